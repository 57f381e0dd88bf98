import { CAUSE } from '../job/states.ts'
import { insertBlockedRuns, insertReadyRuns, type ReadyRun } from '../ready/insert-runs.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type LockedTimer, removeTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import { decide, FRESH_MS, type SkipRange } from './decide.ts'
import { dueOf } from './due.ts'
import { meetLive } from './meet-live.sql.ts'
import { putSkips } from './put-skips.sql.ts'
import type { Schedules } from './schedules.sql.ts'

const IS_ALIVE = statement(
  'job_is_alive',
  'select exists (select from belfry.runs r where r.shard = $1 and r.job_id = $2)',
)
const COMPLETE = statement(
  'complete_job',
  'update belfry.jobs j set status = 2, updated_at = to_timestamp($3::float8 / 1000) where j.shard = $1 and j.id = $2 and j.status < 2',
)

/** Whether a run of the job is alive, in any state: one in backoff counts. */
export async function isAlive(tx: Queryable, shard: number, jobId: string): Promise<boolean> {
  return (await tx.query<[boolean]>(IS_ALIVE, [shard, jobId]))[0]?.[0] === true
}

export interface DecideDeps {
  schedules: Schedules
  turns: Turns
  /** What a leased run gets that is asked to stop. */
  cancelGraceMs: number
}

export interface Decided {
  /** Runs that became ready. */
  ready: ReadyRun[]
  /** Nominal times of runs whose holders were asked to stop. */
  asked: Instant[]
  /** As written; null: the schedule is used up and the timer is gone. */
  timer: LockedTimer | null
}

/** Nominal times that become runs in one promotion, so that no job keeps the others waiting; the next one follows at once. */
const MAX_RUNS = 100
/** A transaction that changes a job decides all that came before. */
const MAX_RUNS_BEFORE_CHANGE = 20_000

/**
 * Decides every nominal time of a recurring job up to `now`, in a transaction that holds the job's timer: for jobs of
 * which several times have come, whose compare-and-set keeps failing, for catch-up and last runs, for those that meet a live
 * run, and before anything changes the job. Whoever changes the job decides up to the nominal time; promotion only what is due.
 */
export async function decideJob(
  tx: Queryable,
  deps: DecideDeps,
  locked: LockedTimer,
  now: Instant,
  upTo: 'due' | 'nominal',
): Promise<Decided> {
  let timer = locked
  if (timer.scheduleId === null || timer.nominalAt === null) return { ready: [], asked: [], timer }
  const known = await deps.schedules.mustGet({ shard: timer.shard, scheduleId: timer.scheduleId })
  const times: Instant[] = []
  const skips: SkipRange[] = []
  const fresh = new Set<Instant>()
  const maxRuns = upTo === 'due' ? MAX_RUNS : MAX_RUNS_BEFORE_CHANGE
  while (timer.nominalAt !== null && times.length < maxRuns) {
    const nominalAt: Instant = timer.nominalAt
    // A jittered nominal time belongs to the definition under which it came, though it is due a little later.
    const delayMs = upTo === 'due' ? dueOf(nominalAt, timer.jitterMs, known.schedule) - nominalAt : 0
    if (nominalAt + delayMs > now) break
    const undecided = { nominalAt, delayMs, decidedUntil: timer.decidedUntil, remainingRuns: timer.remainingRuns }
    const decision = decide(undecided, known.schedule, known.catchUp, {
      ...{ at: now, maxRuns: maxRuns - times.length },
    })
    times.push(...decision.runs)
    skips.push(...decision.skips)
    for (const at of decision.runs) if (now - at - delayMs < FRESH_MS) fresh.add(at)
    timer = {
      ...timer,
      decidedUntil: decision.decidedUntil,
      remainingRuns: decision.remainingRuns,
      nominalAt: decision.next,
    }
  }
  // All at once: what an older time of them would have made, a newer one may make superfluous.
  const met = await meetLive(tx, timer, timer.overlap, times, { now, graceMs: deps.cancelGraceMs })
  await putSkips(tx, timer, [...skips, ...met.skips], now)
  const born = (nominalAt: Instant, turn: number): ReadyRun =>
    readyRunOf(timer, nominalAt, fresh.has(nominalAt) ? CAUSE.schedule : CAUSE.catch_up, turn, now)
  const ready = met.ready.map((at) => born(at, deps.turns.next(now, timer)))
  await insertReadyRuns(tx, ready)
  await insertBlockedRuns(
    tx,
    met.blocked.map((at) => born(at, 0)),
  )
  const { asked } = met
  timer = withGivenBack(timer, times.length - ready.length - met.blocked.length, known.schedule)
  if (timer.nominalAt === null) {
    await removeTimer(tx, timer.shard, timer.jobId)
    await tx.query(COMPLETE, [timer.shard, timer.jobId, now])
    return { ready, asked, timer: null }
  }
  timer = {
    ...timer,
    dueAt: Math.max(now, dueOf(timer.nominalAt, timer.jitterMs, known.schedule)),
    version: timer.version + 1,
  }
  await writeTimer(tx, timer)
  return { ready, asked, timer }
}

/** Of `maxRuns`, only what became a run is used up: with what others stood in the way of, the schedule goes on. */
function withGivenBack(timer: LockedTimer, skipped: number, schedule: Schedule): LockedTimer {
  const { remainingRuns, nominalAt, decidedUntil } = timer
  if (remainingRuns === null || skipped === 0) return timer
  const next = nominalAt ?? (decidedUntil === null ? null : schedule.next(decidedUntil))
  return { ...timer, remainingRuns: remainingRuns + skipped, nominalAt: next }
}

export function readyRunOf(
  timer: LockedTimer,
  nominalAt: Instant,
  cause: number,
  turn: number,
  now: Instant,
): ReadyRun {
  return {
    shard: timer.shard,
    jobId: timer.jobId,
    nominalAt,
    dueAt: now,
    turn,
    tenantId: timer.tenantId,
    queueId: timer.queueId,
    jobVersion: timer.jobVersion,
    attempt: 0,
    timeoutMs: timer.timeoutMs,
    priority: timer.priority,
    cause,
    delivery: timer.delivery,
    oneOff: timer.scheduleId === null,
    hasDependents: timer.hasDependents,
    limitKey: timer.limitKey,
  }
}
