import { JOB_STATUS, lockJob } from '../intake/job-row.sql.ts'
import { DEFAULT_OVERLAP, DEFAULT_PRIORITY, type Definition, queueKindOf, usualTimeoutMs } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf } from '../job/flow-keys.ts'
import { createdAtOf, shardOfJob } from '../job/ids.ts'
import { CAUSE, OVERLAP } from '../job/states.ts'
import { isAlive, readyRunOf } from '../promotion/decide-job.sql.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import { insertReadyRuns, type ReadyRun } from '../ready/insert-runs.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Registry } from '../shards/registry.sql.ts'
import type { Queryable } from '../store/database.ts'
import { type LockedTimer, lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import { BACKFILL_STATUS, type Backfill } from './backfill.ts'
import { lockOpenBackfills, writeBackfill } from './backfill-rows.sql.ts'
import { putBackfillRuns, readOpenRuns, settleRuns } from './backfill-runs.sql.ts'
import type { LookAhead } from './look-ahead.ts'
import { MAX_OPEN } from './look-at-jobs.sql.ts'
import { keptSince } from './traces.ts'

export interface AdvanceDeps {
  schedules: Schedules
  turns: Turns
  registry: Registry
  lookAhead: LookAhead
  historyDays: number
}

export interface Advanced {
  ready: ReadyRun[]
  /** Times that became runs or were left out, and runs that were seen to have ended. */
  changed: number
  /** There is more to look at, and room. */
  hasMore: boolean
}

/**
 * Takes the backfills of a job one step further, in a transaction that holds the job's timer: counts what has ended, makes
 * the next runs where there is room, ends what is over. Two nodes that do so at once do it one after the other, and the
 * second finds the position of the first.
 */
export async function advanceBackfills(
  tx: Queryable,
  deps: AdvanceDeps,
  jobId: string,
  now: Instant,
): Promise<Advanced> {
  const shard = shardOfJob(jobId)
  const timer = await lockTimer(tx, shard, jobId)
  const job = timer ?? (await completedJob(tx, deps.registry, jobId))
  const done: Advanced = { ready: [], changed: 0, hasMore: false }
  for (const backfill of await lockOpenBackfills(tx, shard, jobId, MAX_OPEN)) {
    const advanced = await advance(tx, deps, backfill, job, now)
    done.ready.push(...advanced.ready)
    done.changed += advanced.changed
    done.hasMore ||= advanced.hasMore
  }
  // Whoever inserts a run of a job that has a timer raises its version.
  if (timer && done.ready.length > 0) await writeTimer(tx, timer)
  return done
}

async function advance(
  tx: Queryable,
  deps: AdvanceDeps,
  before: Backfill,
  job: LockedTimer | null,
  now: Instant,
): Promise<Advanced> {
  const open = await readOpenRuns(tx, before)
  const over = open.filter((run) => !run.isAlive)
  const settled = await settleRuns(tx, before, over)
  const alive = open.length - over.length
  if (settled.status !== BACKFILL_STATUS.running || job === null) {
    const status = settled.status === BACKFILL_STATUS.running ? BACKFILL_STATUS.canceled : settled.status
    await writeBackfill(tx, { ...settled, status, endedAt: alive === 0 ? now : null })
    return { ready: [], changed: over.length, hasMore: false }
  }
  const room = await roomFor(tx, settled, job, alive)
  const filled =
    room === 0
      ? { backfill: settled, ready: [], looked: 0, hasMore: false }
      : await fill(tx, deps, settled, job, room, now)
  const { backfill, ready, looked, hasMore } = filled
  const isOver = backfill.position >= backfill.to && alive + ready.length === 0
  const status = isOver ? BACKFILL_STATUS.completed : backfill.status
  if (backfill !== before || isOver) await writeBackfill(tx, { ...backfill, status, endedAt: isOver ? now : null })
  return { ready, changed: over.length + looked, hasMore }
}

/** Unless its runs may overlap, a job that is being backfilled has one run alive at a time, whatever made it. */
async function roomFor(tx: Queryable, backfill: Backfill, job: LockedTimer, alive: number): Promise<number> {
  if (job.overlap === OVERLAP.allow) return Math.max(0, backfill.concurrency - alive)
  return (await isAlive(tx, job.shard, job.jobId)) ? 0 : 1
}

/** Makes runs of the next times that have none, up to where the schedule has still to decide. */
async function fill(
  tx: Queryable,
  { schedules, turns, lookAhead, historyDays }: AdvanceDeps,
  backfill: Backfill,
  job: LockedTimer,
  room: number,
  now: Instant,
): Promise<{ backfill: Backfill; ready: ReadyRun[]; looked: number; hasMore: boolean }> {
  const { shard, scheduleId, position, to } = backfill
  const known = await schedules.mustGet({ shard, scheduleId })
  const { times, taken, isRest } = await lookAhead.next(tx, known.schedule, backfill, job, room)
  const undecidedFrom = job.nominalAt ?? to
  const [since, createdAt] = [keptSince(now, historyDays), createdAtOf(job.jobId)]
  // A backfill may take longer than history is kept: of such a time nobody knows any more whether it had a run.
  const mayRun = (at: Instant) => !taken.has(at) && (at >= since || at < createdAt)
  const free: Instant[] = []
  let looked = 0
  for (const at of times) {
    if (at >= undecidedFrom || (mayRun(at) && free.length === room)) break
    if (mayRun(at)) free.push(at)
    looked++
  }
  const ready = free.map((at) => readyRunOf(job, at, CAUSE.backfill, turns.next(now, job), now))
  await insertReadyRuns(tx, ready)
  await putBackfillRuns(tx, backfill, free)
  const { created, leftOut } = backfill.counts
  const counts = { ...backfill.counts, created: created + free.length, leftOut: leftOut + looked - free.length }
  const reached = looked === 0 ? position : (times[looked - 1] as Instant) + 1
  const following = times[looked]
  const isAtEnd = following === undefined && isRest
  // The rest is for later: the schedule runs those times, or skips them and leaves them to the backfill.
  const isUndecided = following !== undefined && following >= undecidedFrom
  return {
    backfill: {
      ...backfill,
      counts,
      position: isAtEnd ? to : isUndecided ? Math.max(reached, undecidedFrom) : reached,
    },
    ready,
    looked,
    hasMore: !isAtEnd && !isUndecided && free.length < room,
  }
}

/** A job whose schedule is used up has no timer any more, and is its own lock; its definition says all that a run needs. */
async function completedJob(tx: Queryable, registry: Registry, jobId: string): Promise<LockedTimer | null> {
  const job = await lockJob(tx, jobId)
  if (!job || job.status !== JOB_STATUS.completed) return null
  const definition = JSON.parse(job.definitionJson) as Definition
  return {
    shard: job.shard,
    jobId,
    version: 0,
    dueAt: Number.POSITIVE_INFINITY,
    nominalAt: null,
    // Any but null: that would be a one-off.
    scheduleId: '0',
    jobVersion: job.version,
    tenantId: job.tenantId,
    queueId: await registry.queueId(job.tenantId, definition.queue, queueKindOf(definition)),
    timeoutMs: definition.timeoutMs ?? usualTimeoutMs(definition),
    jitterMs: 0,
    remainingRuns: null,
    priority: definition.priority ?? DEFAULT_PRIORITY,
    overlap: OVERLAP[definition.overlap ?? DEFAULT_OVERLAP],
    delivery: deliveryOf(definition),
    fairnessKey: fairnessKeyOf(definition),
    decidedUntil: null,
    lastTriggerAt: null,
    limitKey: limitKeyOf(definition, job.tenantId, jobId),
    hasDependents: false,
  }
}
