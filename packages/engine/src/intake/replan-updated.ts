import { BelfryError, refusal } from '../errors.ts'
import type { Definition } from '../job/definition.ts'
import { OVERLAP } from '../job/states.ts'
import { dueOf } from '../promotion/due.ts'
import { lastDifference } from '../promotion/last-difference.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import { skipUndecided } from '../promotion/skip-undecided.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'
import type { Queryable } from '../store/database.ts'
import { type LockedTimer, NEVER_DUE, takesOverAt } from '../timers/lock-timer.sql.ts'
import { countScheduledRuns, MAX_COUNTED_RUNS } from './count-runs.sql.ts'
import { jitterOf } from './jitter.ts'
import { JOB_STATUS, type JobRow } from './job-row.sql.ts'
import { cannotChange } from './merge-update.ts'
import { neverFires } from './never-fires.ts'
import { type CalendarReader, calendarsOf, resolveFor } from './resolve-when.ts'
import { overlapOfChain } from './understand-after.ts'
import { canonicalJson } from './understand-fingerprint.ts'
import type { UnderstoodJob } from './understand-job.ts'
import type { RecurringWhen } from './understand-recurring.ts'

export interface ReplanUpdatedDeps {
  schedules: Schedules
  calendars: CalendarReader
}

/**
 * The timer of a job that was changed, in the transaction that holds it. What was due has been decided under the old
 * definition, so the new one begins now; a schedule that stays the same keeps the nominal time that it waits for.
 */
export async function replanUpdated(
  tx: Queryable,
  deps: ReplanUpdatedDeps,
  { job, timer, understood, now }: { job: JobRow; timer: LockedTimer; understood: UnderstoodJob; now: Instant },
): Promise<LockedTimer> {
  const { when } = understood
  const isPaused = job.status === JOB_STATUS.paused
  if (understood.definition.after !== undefined) return replanChain(job, timer, understood.definition)
  if (when.kind !== 'recurring') {
    if (timer.scheduleId !== null)
      throw new BelfryError('invalid_job', 'a recurring job cannot become a one-off: cancel it and create anew')
    const asked = when.kind === 'now' ? now : when.at
    // A run that was triggered may have that nominal time.
    const at = asked === timer.lastTriggerAt ? asked + 1 : asked
    return { ...timer, nominalAt: at, dueAt: isPaused ? NEVER_DUE : Math.max(now, at) }
  }
  if (timer.scheduleId === null)
    throw new BelfryError('invalid_job', 'a one-off cannot become recurring: cancel it and create anew')
  const from = takesOverAt(timer, now)
  const calendars = await deps.calendars.read(job.tenantId, calendarsOf(when))
  const spec = resolveFor(when.schedule, { jobId: job.jobId, calendars, from })
  const { id, schedule } = deps.schedules.of(spec)
  const jitterMs = jitterOf(job.jobId, when.jitterMs)
  const kept = {
    ...timer,
    overlap: OVERLAP[when.overlap],
    remainingRuns: await remainingRuns(tx, job, timer, when),
  }
  const dueAt = (at: Instant) => (isPaused ? NEVER_DUE : Math.max(now, dueOf(at, jitterMs, schedule)))
  if (id === timer.scheduleId && timer.nominalAt !== null)
    return jitterMs === timer.jitterMs ? kept : { ...kept, jitterMs, dueAt: dueAt(timer.nominalAt) }
  const missed = await closeOld(tx, deps, timer, { isPaused, schedule, now })
  const nominalAt = missed ?? schedule.next(from)
  if (nominalAt === null) throw neverFires(spec, from + 1)
  await deps.schedules.intern([{ shard: timer.shard, spec }])
  const decidedUntil = missed === null ? from : timer.decidedUntil
  return { ...kept, scheduleId: id, nominalAt, decidedUntil, dueAt: dueAt(nominalAt), jitterMs }
}

/** What a job follows stands in its edges: only what it does may change. */
function replanChain(job: JobRow, timer: LockedTimer, definition: Definition): LockedTimer {
  const { after } = JSON.parse(job.definitionJson) as Definition
  if (after === undefined || canonicalJson(after) !== canonicalJson(definition.after)) throw cannotChange('after')
  return { ...timer, overlap: OVERLAP[overlapOfChain(definition)] }
}

/**
 * Nominal times of the old schedule that nobody decided are not forgotten with it. Answers from where on they still wait for
 * the end of the pause, if the new one has the same in it: another catch-up, or days to leave out in future.
 */
async function closeOld(
  tx: Queryable,
  { schedules }: ReplanUpdatedDeps,
  timer: LockedTimer,
  { isPaused, schedule, now }: { isPaused: boolean; schedule: Schedule; now: Instant },
): Promise<Instant | null> {
  const { nominalAt: from, shard, scheduleId } = timer
  if (from === null || scheduleId === null || from > now) return null
  if (!isPaused) throw new BelfryError('in_progress', 'the job is still making up for missed times: try again')
  const { schedule: old } = await schedules.mustGet({ shard, scheduleId })
  const hasSame = lastDifference(old, schedule, { after: from - 1, until: now }) === null
  if (hasSame && schedule.next(from - 1) === from) return from
  await skipUndecided(tx, timer, old, { reason: 'paused', until: now, now })
  return null
}

/** `maxRuns` is a total: what was run before it was changed counts. */
async function remainingRuns(
  tx: Queryable,
  job: JobRow,
  timer: LockedTimer,
  { maxRuns }: RecurringWhen,
): Promise<number | null> {
  if (maxRuns === null) return null
  const { maxRuns: before } = JSON.parse(job.definitionJson) as Definition
  const soFar =
    before === undefined || timer.remainingRuns === null
      ? await countScheduledRuns(tx, job, maxRuns)
      : before - timer.remainingRuns
  const isCountedOut = before !== undefined || soFar < MAX_COUNTED_RUNS
  if (soFar < maxRuns && isCountedOut) return maxRuns - soFar
  const message = isCountedOut
    ? `must be more than the ${soFar} runs that there were: cancel the job to end it`
    : `cannot be given to a job that has had ${MAX_COUNTED_RUNS} runs or more: cancel the job to end it, or create it anew`
  throw refusal('invalid_job', 'maxRuns', message)
}
