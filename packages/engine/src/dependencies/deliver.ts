import { CHILD_KIND, meaningOf, ON_PARENT_FAILURE } from '../job/after.ts'
import { shardOfJob } from '../job/ids.ts'
import { nameOf, OUTCOME } from '../job/states.ts'
import type { Charged, Turns } from '../ready/turn.ts'
import type { MadeReady } from '../ready/wake-waiting.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Database, Transaction } from '../store/database.ts'
import { type Counts, countInBatches, countOf, noCounts } from './batches.sql.ts'
import {
  type Child,
  type EndedChild,
  endChildren,
  lockCanceled,
  lockChildren,
  lookAtChildren,
  releaseChildren,
} from './children.sql.ts'
import { deleteEdges, EDGE_STATE, type Edge, markEdges, readOpenEdges } from './edges.sql.ts'
import { deleteEnds, type End, lockEndsOfOneOffs } from './outbox.sql.ts'

export interface DeliverDeps {
  db: Database
  turns: Turns
}

export interface Delivered {
  /** Of how many ends everybody was told. */
  ends: number
  /** Children that became ready. */
  ready: MadeReady[]
  /** There is more to deliver: ends of children, or edges that did not fit. */
  hasMore: boolean
  /** Somebody holds a child: its parent's end stays for another time. */
  wasHeld: boolean
}

/** In one transaction; the rest of a parent with more children comes with the next. */
const MAX_EDGES = 10_000
/** Whoever opens the same child again is waited for so long; then everything of this transaction is left for another time. */
const LOCK_TIMEOUT_MS = 200

/** What becomes of the edges and children of some ends. */
interface Plan {
  gone: Edge[]
  broken: Edge[]
  canceled: Edge[]
  /** Batch edges stay with the way in which the job ended, unless it succeeded: it may be opened again. */
  counted: { edge: Edge; outcome: number }[]
  ended: Map<string, EndedChild>
  /** Children of which an edge went. */
  freed: Map<string, Child>
}

/**
 * Tells the children of one-offs that have ended, a bounded number at a time, in one transaction: it takes rows of the outbox,
 * then the children in order, **then** changes the edges, and **then**, in a statement that sees what others have committed
 * before the child was theirs, makes those ready that wait for nobody any more. So two parents that end at the same moment wake
 * their child once, whoever delivers what; and if this fails anywhere, nothing of it has happened and the rows are still there.
 *
 * A child that somebody else holds is passed over, and the ends that concern it stay in the outbox.
 */
export function deliver(deps: DeliverDeps, { now, limit }: { now: Instant; limit: number }): Promise<Delivered> {
  return deps.db.transaction(async (tx) => {
    const ends = await lockEndsOfOneOffs(tx, limit)
    if (ends.length === 0) return { ends: 0, ready: [], hasMore: false, wasHeld: false }
    const edges = await readOpenEdges(tx, [...new Set(ends.map(({ jobId }) => jobId))], MAX_EDGES)
    const byParent = new Map(ends.map((end) => [end.jobId, end]))
    const children = childrenOf(edges)
    const locked = await lockChildren(tx, children)
    const missing = children.filter(({ jobId }) => !locked.has(jobId))
    const held = missing.length === 0 ? NONE : await lookAtChildren(tx, missing)
    const within = edges.filter(({ child }) => !held.has(child))
    const reopened = await plan(tx, within, byParent, { locked, missing })
    const told = await carryOut(tx, reopened.plan, { locked, turns: deps.turns, now })
    const isWhole = edges.length < MAX_EDGES
    const open = new Set(edges.filter(({ child }) => held.has(child) || reopened.held.has(child)).map((e) => e.parent))
    const done = isWhole ? ends.filter(({ jobId }) => !open.has(jobId)) : []
    await deleteEnds(tx, done)
    return {
      ends: done.length,
      ready: told.ready,
      hasMore: told.ends > 0 || !isWhole || ends.length === limit,
      wasHeld: open.size > 0,
    }
  })
}

const NONE: ReadonlySet<string> = new Set()

async function plan(
  tx: Transaction,
  edges: readonly Edge[],
  ends: ReadonlyMap<string, End>,
  { locked, missing }: { locked: ReadonlyMap<string, Charged>; missing: readonly Child[] },
): Promise<{ plan: Plan; held: ReadonlySet<string> }> {
  const made: Plan = { gone: [], broken: [], canceled: [], counted: [], ended: new Map(), freed: new Map() }
  const afterTheirEnd: Edge[] = []
  for (const edge of edges) {
    const end = ends.get(edge.parent) as End
    if (edge.kind === CHILD_KIND.batch) {
      made.counted.push({ edge, outcome: end.outcome })
      continue
    }
    const meaning = meaningOf(end.outcome, edge)
    if (meaning === 'broken' && !locked.has(edge.child)) {
      afterTheirEnd.push(edge)
      continue
    }
    if (meaning !== 'broken') made.gone.push(edge)
    else (edge.onFailure === ON_PARENT_FAILURE.block ? made.broken : made.canceled).push(edge)
    if (!locked.has(edge.child)) continue
    const child = { jobId: edge.child, nominalAt: edge.childNominal as Instant }
    if (meaning === 'satisfied') made.freed.set(edge.child, child)
    else if (edge.onFailure !== ON_PARENT_FAILURE.block && !made.ended.has(edge.child))
      made.ended.set(edge.child, { ...child, ...fateOf(end, meaning) })
  }
  const held = afterTheirEnd.length === 0 ? NONE : await planGone(tx, made, afterTheirEnd, missing)
  return { plan: made, held }
}

/**
 * The parent failed a child that is not there any more. If the failure of another parent has ended it, it may be opened again
 * with that one, and must know of this failure; else somebody has canceled it, and nothing will open it. Answers those that
 * somebody opened again at this very moment.
 */
async function planGone(
  tx: Transaction,
  made: Plan,
  edges: readonly Edge[],
  missing: readonly Child[],
): Promise<ReadonlySet<string>> {
  await tx.setLockTimeout(LOCK_TIMEOUT_MS)
  const children = new Set(edges.map(({ child }) => child))
  const canceled = await lockCanceled(tx, [...children])
  const back = await lookAtChildren(
    tx,
    missing.filter(({ jobId }) => children.has(jobId)),
  )
  for (const edge of edges) {
    if (!back.has(edge.child)) (canceled.has(edge.child) ? made.canceled : made.gone).push(edge)
  }
  return back
}

function fateOf({ jobId, outcome }: End, meaning: 'broken' | 'needless'): Pick<EndedChild, 'outcome' | 'error'> {
  const how = nameOf(OUTCOME, outcome)
  return meaning === 'broken'
    ? { outcome: OUTCOME.canceled, error: `canceled: job ${jobId}, which it waited for, ${VERBS[how ?? 'failed']}` }
    : {
        outcome: OUTCOME.skipped,
        error: `not needed: job ${jobId}, whose failure it waited for, ${VERBS[how ?? 'failed']}`,
      }
}

const VERBS: Readonly<Record<string, string>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  lost: 'was lost',
  canceled: 'was canceled',
  skipped: 'was skipped',
}

async function carryOut(
  tx: Transaction,
  { gone, broken, canceled, counted, ended, freed }: Plan,
  { locked, turns, now }: { locked: ReadonlyMap<string, Charged>; turns: Turns; now: Instant },
): Promise<{ ready: MadeReady[]; ends: number }> {
  const isOver = ({ outcome }: { outcome: number }) => outcome === OUTCOME.succeeded
  await deleteEdges(tx, [...gone, ...counted.filter(isOver).map(({ edge }) => edge)])
  await markEdges(tx, broken, EDGE_STATE.broken)
  await markEdges(tx, canceled, EDGE_STATE.canceled)
  const open = counted.filter((one) => !isOver(one))
  for (const outcome of new Set(open.map((one) => one.outcome)))
    await markEdges(
      tx,
      open.filter((one) => one.outcome === outcome).map(({ edge }) => edge),
      outcome,
    )
  let ends = await endChildren(tx, inLockOrder(ended.values()), now)
  const mayGo = inLockOrder([...freed.values()].filter(({ jobId }) => !ended.has(jobId)))
  const withTurns = mayGo.map((child) => ({ ...child, turn: turns.next(now, locked.get(child.jobId) as Charged) }))
  const ready = await releaseChildren(tx, withTurns, now)
  ends += await countInBatches(tx, countsOf(counted), now)
  return { ready, ends }
}

/** The runs that wait, each once and in lock order. */
function childrenOf(edges: readonly Edge[]): Child[] {
  const children = new Map<string, Child>()
  for (const { child, childNominal, kind } of edges) {
    if (kind === CHILD_KIND.one_off) children.set(child, { jobId: child, nominalAt: childNominal as Instant })
  }
  return inLockOrder(children.values())
}

function countsOf(counted: Plan['counted']): Map<string, Counts> {
  const counts = new Map<string, Counts>()
  for (const { edge, outcome } of counted) {
    const of = counts.get(edge.child) ?? noCounts()
    of[countOf(outcome)]++
    counts.set(edge.child, of)
  }
  return counts
}

/** Each shard is read out of its id once, not at every comparison. */
function inLockOrder<Waiting extends Child>(children: Iterable<Waiting>): Waiting[] {
  const placed = Array.from(children, (child) => ({ child, shard: shardOfJob(child.jobId) }))
  placed.sort((a, b) => a.shard - b.shard || (a.child.jobId < b.child.jobId ? -1 : 1))
  return placed.map(({ child }) => child)
}
