import { meaningOf } from '../job/after.ts'
import { shardOfJob } from '../job/ids.ts'
import { CAUSE } from '../job/states.ts'
import type { SkipRange } from '../promotion/decide.ts'
import { readyRunOf } from '../promotion/decide-job.sql.ts'
import { meetLive } from '../promotion/meet-live.sql.ts'
import { putSkips } from '../promotion/put-skips.sql.ts'
import { insertBlockedRuns, insertReadyRuns, type ReadyRun } from '../ready/insert-runs.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Database, Transaction } from '../store/database.ts'
import { type LockedTimer, lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import { chainStatus, hadRun, holdChains, lookAtOtherParents, wasSkipped } from './chain.sql.ts'
import { deleteEdges, type Edge, readOpenEdges } from './edges.sql.ts'
import { type Behind, deleteEnds, type End, lockEndsOfRecurring } from './outbox.sql.ts'

export interface ChainDeps {
  db: Database
  turns: Turns
  /** What a leased run gets that is asked to stop. */
  cancelGraceMs: number
  /** A run of the job is about to wait for another. */
  onBlocked(jobId: string): void
}

export interface ChainDelivered {
  ends: number
  ready: ReadyRun[]
  /** Runs whose holders were asked to stop. */
  asked: { jobId: string; nominalAt: Instant }[]
  hasMore: boolean
  /** Somebody holds a job that is to be told: the end stays for another time. */
  wasHeld: boolean
  /** Where to look next; null: from the first on. */
  behind: Behind
}

/** Ends of one transaction: the locks of the jobs that follow are not held for long. */
const MAX_ENDS = 100
const MAX_CHILDREN = 1_000
const LOCK_TIMEOUT_MS = 1_000
const PAUSED = 1
const CANCELED = 3

/**
 * Tells the jobs that follow recurring ones of runs that have ended: each gets a run of its own with the parent's nominal time,
 * under its own overlap policy. (job, nominal time) is the run's identity, so however often an end is told, and by how many
 * parents, there is one. A time that gets none is recorded as a skip.
 */
export function deliverChain(deps: ChainDeps, now: Instant, behind: Behind = null): Promise<ChainDelivered> {
  return deps.db.transaction(async (tx) => {
    const done: ChainDelivered = { ends: 0, ready: [], asked: [], hasMore: false, wasHeld: false, behind: null }
    const ends = await lockEndsOfRecurring(tx, MAX_ENDS, behind)
    done.hasMore = behind !== null || ends.length === MAX_ENDS
    if (ends.length === 0) return done
    await tx.setLockTimeout(LOCK_TIMEOUT_MS)
    const pairs = await pairsOf(tx, ends)
    const elsewhere = await holdChains(tx, new Set(pairs.map(({ edge }) => edge.child)))
    const open = new Set<End>()
    for (const { end, edge } of pairs) {
      if (elsewhere.has(edge.child)) open.add(end)
      else await follow(tx, deps, { end, edge, now, done })
    }
    const told = ends.filter((end) => !open.has(end))
    await deleteEnds(tx, told)
    done.ends = told.length
    done.wasHeld = open.size > 0
    done.behind = ends.length === MAX_ENDS ? (ends.at(-1) as End) : null
    return done
  })
}

/** What is to be told to whom: each job of the times before, in their order. */
async function pairsOf(tx: Transaction, ends: readonly End[]): Promise<{ end: End; edge: Edge }[]> {
  const edges = await readOpenEdges(tx, [...new Set(ends.map(({ jobId }) => jobId))], MAX_ENDS * MAX_CHILDREN)
  const pairs = ends.flatMap((end) => edges.filter(({ parent }) => parent === end.jobId).map((edge) => ({ end, edge })))
  return pairs.sort((a, b) =>
    a.edge.child === b.edge.child ? a.end.nominalAt - b.end.nominalAt : a.edge.child < b.edge.child ? -1 : 1,
  )
}

interface Follow {
  end: End
  edge: Edge
  now: Instant
  done: ChainDelivered
}

async function follow(tx: Transaction, deps: ChainDeps, { end, edge, now, done }: Follow): Promise<void> {
  const { child } = edge
  const timer = await lockTimer(tx, shardOfJob(child), child)
  const status = await chainStatus(tx, child)
  if (timer === null || status === null || status >= CANCELED) return deleteEdges(tx, [edge])
  const { nominalAt } = end
  if (await hadRun(tx, child, nominalAt)) return
  const others = await lookAtOtherParents(tx, { child, parent: end.jobId, nominalAt })
  // Whoever of them ends last makes the run.
  if (others.some(({ isComing }) => isComing)) return
  const outcomes = [end.outcome, ...others.flatMap(({ outcome }) => (outcome === null ? [] : [outcome]))]
  const isWanted = outcomes.every((outcome) => meaningOf(outcome, edge) === 'satisfied')
  if (!isWanted || status === PAUSED) {
    if (await wasSkipped(tx, child, nominalAt)) return
    const reason = isWanted ? 'paused' : 'dependency'
    return putSkips(tx, timer, [{ from: nominalAt, to: nominalAt + 1, reason, count: 1 }], now)
  }
  await give(tx, deps, { timer, nominalAt, now, done })
}

/** Gives the job a run, or lets it wait, as its overlap policy says. */
async function give(
  tx: Transaction,
  { turns, cancelGraceMs, onBlocked }: ChainDeps,
  { timer, nominalAt, now, done }: { timer: LockedTimer; nominalAt: Instant; now: Instant; done: ChainDelivered },
): Promise<void> {
  const met = await meetLive(tx, timer, timer.overlap, [nominalAt], { now, graceMs: cancelGraceMs })
  const skips: readonly SkipRange[] = met.skips
  await putSkips(tx, timer, skips, now)
  const run = (turn: number): ReadyRun => ({ ...readyRunOf(timer, nominalAt, CAUSE.chain, turn, now), oneOff: false })
  if (met.ready.length > 0) {
    const ready = run(turns.next(now, timer))
    await insertReadyRuns(tx, [ready])
    done.ready.push(ready)
  }
  if (met.blocked.length > 0) {
    onBlocked(timer.jobId)
    await insertBlockedRuns(tx, [run(0)])
  }
  for (const at of met.asked) done.asked.push({ jobId: timer.jobId, nominalAt: at })
  // Whoever inserts a run of a job that has a timer raises its version.
  await writeTimer(tx, timer)
}
