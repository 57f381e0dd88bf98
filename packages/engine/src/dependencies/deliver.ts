import { CHILD_KIND, meaningOf, ON_PARENT_FAILURE } from '../job/after.ts'
import { shardOfJob } from '../job/ids.ts'
import { nameOf, OUTCOME } from '../job/states.ts'
import type { Turns } from '../ready/turn.ts'
import type { MadeReady } from '../ready/woken.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Database, Transaction } from '../store/database.ts'
import { type Counts, countInBatches, countOf, noCounts } from './batches.sql.ts'
import {
  type Child,
  type EndedChild,
  endChildren,
  lockCanceled,
  lookAtChildren,
  releaseChildren,
} from './children.sql.ts'
import { EDGE_STATE, markEdges } from './edges.sql.ts'
import { forgetTold } from './forget-told.sql.ts'
import { type HeldChild, type HeldEdge, holdChildren } from './hold-children.sql.ts'
import { type Behind, type End, type HeldEnd, lockEndsOfOneOffs, OPENED } from './outbox.sql.ts'
import { type ReopenDeps, reopenFurther } from './reopen-children.ts'

export interface DeliverDeps extends ReopenDeps {
  db: Database
  turns: Turns
}

export interface Delivered {
  /** Children that wait for nobody any more. */
  ready: MadeReady[]
  /** Of how many ends everybody was told. */
  ends: number
  /** There is more to deliver: ends of children, or edges that did not fit. */
  hasMore: boolean
  /** Somebody holds a child: its parent's end stays for another time. */
  wasHeld: boolean
  /** Where to look next; null: from the first on. */
  behind: Behind
}

interface DeliverTerms {
  now: Instant
  limit: number
  behind?: Behind
  /** What to do with runs that were opened again and whose children are not: `leave` them for another time. */
  opened?: 'open' | 'leave'
}

/** In one transaction; the rest of a parent with more children comes with the next. */
const MAX_EDGES = 10_000
/** Whoever opens the same child again is waited for so long; then everything of this transaction is left for another time. */
const LOCK_TIMEOUT_MS = 200

/** What becomes of the edges and children of some ends. */
interface Plan {
  gone: HeldEdge[]
  broken: HeldEdge[]
  canceled: HeldEdge[]
  /** Batch edges stay with the way in which the job ended, unless it succeeded: it may be opened again. */
  counted: { edge: HeldEdge; outcome: number }[]
  ended: Map<string, EndedChild>
  /** Children that are held and of which edges go, with the number of those. */
  freed: Map<string, number>
}

/**
 * Tells the children of one-offs that have ended, a bounded number at a time, in one transaction: it takes rows of the outbox,
 * then the children in order, **then** removes the edges in a statement that sees what others have committed before the child was
 * held, and lets those go that wait for nobody any more. So two parents that end at the same moment wake their child once,
 * whoever delivers what; and if this fails anywhere, nothing of it has happened and the rows are still there.
 *
 * A child that somebody else holds is passed over, and the ends that concern it stay in the outbox.
 */
export function deliver(
  deps: DeliverDeps,
  { now, limit, behind = null, opened: whatToDo = 'open' }: DeliverTerms,
): Promise<Delivered> {
  return deps.db.transaction(async (tx) => {
    await tx.setLockTimeout(LOCK_TIMEOUT_MS)
    const all = await lockEndsOfOneOffs(tx, limit, behind)
    const opened = all.filter(({ number }) => number === OPENED)
    const ends = opened.length === 0 ? all : all.filter(({ number }) => number !== OPENED)
    const hasMore = all.length === limit || (behind !== null && (ends.length > 0 || all.length === 0))
    const last = all.length === limit ? (all.at(-1) as End) : null
    if (opened.length > 0 && whatToDo === 'open') {
      // Alone, and the ends beside them the next time: what is opened here may be told of those.
      await reopenFurther(tx, opened, deps, now)
      return { ends: opened.length, ready: [], hasMore: true, wasHeld: false, behind }
    }
    if (ends.length === 0) return { ends: 0, ready: [], hasMore, wasHeld: false, behind: last }
    const edges = await holdChildren(tx, [...new Set(ends.map(({ jobId }) => jobId))], MAX_EDGES)
    const { locked, missing } = childrenOf(edges)
    const elsewhere = missing.length === 0 ? NONE : await lookAtChildren(tx, missing)
    const within = edges.filter(({ child }) => !elsewhere.has(child))
    const made = await plan(tx, within, new Map(ends.map((end) => [end.jobId, end])), { locked, missing })
    const open = new Set(
      edges.filter(({ child }) => elsewhere.has(child) || made.held.has(child)).map(({ parent }) => parent),
    )
    const isWhole = edges.length < MAX_EDGES
    const done = isWhole ? ends.filter(({ jobId }) => !open.has(jobId)) : []
    const told = await carryOut(tx, deps, made.plan, { locked, done, now })
    return {
      ends: done.length,
      ready: told.ready,
      hasMore: hasMore || told.ends > 0 || !isWhole,
      wasHeld: open.size > 0,
      behind: isWhole ? last : null,
    }
  })
}

const NONE: ReadonlySet<string> = new Set()

async function plan(
  tx: Transaction,
  edges: readonly HeldEdge[],
  ends: ReadonlyMap<string, End>,
  { locked, missing }: Children,
): Promise<{ plan: Plan; held: ReadonlySet<string> }> {
  const made: Plan = { gone: [], broken: [], canceled: [], counted: [], ended: new Map(), freed: new Map() }
  const afterTheirEnd: HeldEdge[] = []
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
    if (meaning === 'satisfied') made.freed.set(edge.child, (made.freed.get(edge.child) ?? 0) + 1)
    else if (edge.onFailure !== ON_PARENT_FAILURE.block && !made.ended.has(edge.child))
      made.ended.set(edge.child, { ...childOf(edge), ...fateOf(end, meaning) })
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
  edges: readonly HeldEdge[],
  missing: readonly Child[],
): Promise<ReadonlySet<string>> {
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

function fateOf(
  { jobId, outcome }: End,
  meaning: 'broken' | 'needless',
): Pick<EndedChild, 'outcome' | 'reason' | 'error'> {
  const how = nameOf(OUTCOME, outcome)
  return meaning === 'broken'
    ? {
        outcome: OUTCOME.canceled,
        reason: 'parent_failed',
        error: `canceled: job ${jobId}, which it waited for, ${VERBS[how ?? 'failed']}`,
      }
    : {
        outcome: OUTCOME.skipped,
        reason: 'not_needed',
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
  { turns }: DeliverDeps,
  { gone, broken, canceled, counted, ended, freed }: Plan,
  { locked, done, now }: Pick<Children, 'locked'> & { done: readonly HeldEnd[]; now: Instant },
): Promise<{ ready: MadeReady[]; ends: number }> {
  const isOver = ({ outcome }: { outcome: number }) => outcome === OUTCOME.succeeded
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
  for (const child of ended.keys()) freed.delete(child)
  const edges = [...gone, ...counted.filter(isOver).map(({ edge }) => edge)]
  const free = await forgetTold(tx, { edges, ends: done, going: freed })
  ends += await countInBatches(tx, countsOf(counted), now)
  const going = free.map((jobId) => {
    const child = locked.get(jobId) as HeldChild
    return { jobId, place: child.place, turn: turns.next(now, child) }
  })
  return { ready: await releaseChildren(tx, going, now), ends }
}

interface Children {
  /** Those that wait and are held here. */
  locked: ReadonlyMap<string, HeldChild>
  /** Those that do not wait any more, or that somebody else holds; each once and in lock order. */
  missing: readonly Child[]
}

function childrenOf(edges: readonly HeldEdge[]): Children {
  const locked = new Map<string, HeldChild>()
  const missing = new Map<string, Child>()
  for (const edge of edges) {
    if (edge.held !== null) locked.set(edge.child, edge.held)
    else if (edge.kind === CHILD_KIND.one_off) missing.set(edge.child, childOf(edge))
  }
  return { locked, missing: inLockOrder(missing.values()) }
}

const childOf = ({ child, childNominal }: HeldEdge): Child => ({ jobId: child, nominalAt: childNominal as Instant })

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
