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
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database, Transaction } from '../store/database.ts'
import { type LockedTimer, lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import { chainStatus, hadRun, holdChains, lookAtParents, stillComing, wasSkipped } from './chain.sql.ts'
import { deleteEdgesOfChild, readOpenEdges } from './edges.sql.ts'
import {
  type Behind,
  type ChainTime,
  deleteEnds,
  type End,
  lockEndsOfRecurring,
  putUndecided,
  UNDECIDED,
} from './outbox.sql.ts'

export interface ChainDeps {
  db: Database
  turns: Turns
  /** What a leased run gets that is asked to stop. */
  cancelGraceMs: number
  wakeups: Wakeups
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
    const undecided = await stillComing(
      tx,
      ends.filter(({ number }) => number === UNDECIDED),
    )
    const sayable = ends.filter((end) => !undecided.has(end))
    // What waits for a timer is looked at again with the pulse.
    done.hasMore = ends.length === MAX_ENDS || (behind !== null && (sayable.length > 0 || ends.length === 0))
    done.behind = ends.length === MAX_ENDS ? (ends.at(-1) as End) : null
    if (sayable.length === 0) return done
    await tx.setLockTimeout(LOCK_TIMEOUT_MS)
    const pairs = await pairsOf(tx, sayable)
    const elsewhere = await holdChains(tx, new Set(pairs.map(({ child }) => child)))
    const open = new Set<End>()
    const again: ChainTime[] = []
    for (const { end, child } of pairs) {
      if (elsewhere.has(child)) open.add(end)
      else await follow(tx, deps, { end, child, now, done, again })
    }
    const told = sayable.filter((end) => !open.has(end))
    await deleteEnds(tx, told)
    await putUndecided(tx, again)
    done.ends = told.length
    done.wasHeld = open.size > 0
    return done
  })
}

/** What is to be told to whom: each job of the times before, in their order. */
async function pairsOf(tx: Transaction, ends: readonly End[]): Promise<{ end: End; child: string }[]> {
  const parents = new Set(ends.flatMap(({ jobId, number }) => (number === UNDECIDED ? [] : [jobId])))
  const children = new Map<string, string[]>()
  for (const { parent, child } of await readOpenEdges(tx, [...parents], MAX_ENDS * MAX_CHILDREN)) {
    const of = children.get(parent)
    if (of) of.push(child)
    else children.set(parent, [child])
  }
  const pairs = ends.flatMap((end) => {
    const told = end.number === UNDECIDED ? [end.jobId] : (children.get(end.jobId) ?? [])
    return told.map((child) => ({ end, child }))
  })
  return pairs.sort((a, b) => (a.child === b.child ? a.end.nominalAt - b.end.nominalAt : a.child < b.child ? -1 : 1))
}

interface Follow {
  end: End
  child: string
  now: Instant
  done: ChainDelivered
  /** Times that cannot be decided yet. */
  again: ChainTime[]
}

async function follow(tx: Transaction, deps: ChainDeps, { end, child, now, done, again }: Follow): Promise<void> {
  const timer = await lockTimer(tx, shardOfJob(child), child)
  const status = await chainStatus(tx, child)
  if (timer === null || status === null || status >= CANCELED) return deleteEdgesOfChild(tx, child)
  const { nominalAt } = end
  if (await hadRun(tx, child, nominalAt)) return
  const parents = await lookAtParents(tx, child, nominalAt)
  const others = parents.filter(({ jobId }) => jobId !== end.jobId)
  // Whoever of them ends last makes the run. One that may yet skip this time would not say so.
  if (others.some(({ isAlive }) => isAlive)) return
  if (others.some(({ isComing }) => isComing)) {
    again.push({ jobId: child, nominalAt })
    return
  }
  const ended = parents.flatMap((parent) => {
    const outcome = parent.jobId === end.jobId ? end.outcome : parent.outcome
    return outcome === null ? [] : [{ parent, outcome }]
  })
  if (ended.length === 0) return
  const isWanted = ended.every(({ parent, outcome }) => meaningOf(outcome, parent) === 'satisfied')
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
  { turns, cancelGraceMs, wakeups }: ChainDeps,
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
    wakeups.blocked(timer.jobId)
    await insertBlockedRuns(tx, [run(0)])
  }
  for (const at of met.asked) done.asked.push({ jobId: timer.jobId, nominalAt: at })
  // Whoever inserts a run of a job that has a timer raises its version.
  await writeTimer(tx, timer)
}
