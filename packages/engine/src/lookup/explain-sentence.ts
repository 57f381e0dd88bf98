import type { Limits } from '../concurrency/shared-limits.sql.ts'
import type { WaitsFor } from '../dependencies/waits-for.sql.ts'
import { ATTEMPT_REASON, type Overlap } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { zoneOf } from '../schedule/zone.ts'
import type { EndedAttempt } from './explain-facts.sql.ts'
import type { ExplainedParent } from './explain-parent.sql.ts'
import type { Doer, ExplainedRun, Explanation, Waits } from './explanation.ts'
import { rateInWords } from './in-words.ts'

export type Unsaid = Omit<Explanation, 'sentence'> & {
  rule: string | null
  /** What it calls; null: nothing. */
  origin: string | null
  /** Of what it calls, as it is now. */
  originLimit: Limits | null
  /** It is the rate of that limit which put the run aside. */
  isRateUsedUp: boolean
  /** It was decided together with a newer time, which runs in its place. */
  isOvertaken: boolean
  /** Its attempts, oldest first. */
  ended: readonly EndedAttempt[]
  /** The job that it waits for. */
  parent: ExplainedParent | null
}

/** One sentence for a person, with times on the clock of the job's zone. */
export function sentenceOf(found: Unsaid): string {
  const time = clockOf(found.timezone)
  const at = time(found.nominalAt ?? found.at)
  switch (found.verdict) {
    case 'ran':
      return `${runOf(found, at)} ${endOf(found, time)}.`
    case 'running':
      return `${runOf(found, at)} is being performed since ${time(found.run?.startedAt ?? found.at)}, attempt ${found.run?.attempt}${found.reason === 'cancel_requested' ? ', and has been asked to stop' : ''}.`
    case 'waiting':
      return waiting(found, at, time)
    case 'skipped':
      return `${at} was skipped: ${skipped(found, time)}.`
    case 'will_run':
      return willRun(found, at, time)
    case 'never':
      return `Nothing runs at ${at}: ${never(found, time)}${around(found, time)}.`
    case 'unknown':
      return unknown(found, at)
  }
}

function unknown({ reason, rule }: Unsaid, at: string): string {
  if (reason === 'history_expired')
    return `What happened at ${at} is not known any more: history of that time has expired.`
  if (reason === 'schedule_unreadable')
    return `Nothing is recorded about ${at}, and the schedule of that time cannot be read: ${rule}.`
  return `${at} is a time of the schedule, and nothing is recorded about it; please report this.`
}

type Time = (at: Date | Instant | null) => string

const clockOf =
  (timezone: string): Time =>
  (at) => {
    if (at === null) return 'an unknown time'
    const local = new Date(zoneOf(timezone).localOf(Number(at))).toISOString()
    // At the end of time, clocks east of Greenwich show a year that nobody can write.
    return local.startsWith('+') ? `${clockText(new Date(at).toISOString())} UTC` : `${clockText(local)} ${timezone}`
  }

const clockText = (iso: string): string =>
  `${iso.slice(0, 10)} ${iso.slice(11, 16)}${iso.slice(17, 19) === '00' ? '' : `:${iso.slice(17, 19)}`}`

function runOf({ run }: Unsaid, at: string): string {
  switch (run?.cause) {
    case 'trigger':
      return `The run that was triggered at ${at}`
    case 'backfill':
      return `The backfilled run of ${at}`
    case 'catch_up':
      return `The run of ${at}, which was caught up later,`
    default:
      return `The run of ${at}`
  }
}

function endOf({ ended, ...found }: Unsaid, time: Time): string {
  const run = found.run as ExplainedRun
  const last = run.attempts.at(-1)
  const tries = run.attempt === 1 ? 'at its first attempt' : `at attempt ${run.attempt}`
  const late = run.latenessMs === null ? '' : `, begun ${lengthOf(run.latenessMs)} after its time`
  if (run.status === 'succeeded') return `succeeded ${tries}${late}`
  const why = [run.failureClass, shortened(run.error ?? last?.error ?? '')].filter(Boolean).join(', ')
  const cause = why === '' ? '' : ` (${why})`
  if (run.status === 'failed')
    return run.failures > 1
      ? `failed for good after ${run.failures} failures${cause}`
      : `failed for good ${tries}${cause}`
  if (run.status === 'lost') return `was lost ${tries}: nobody knows whether it was done${cause}`
  if (run.status === 'canceled')
    return `was canceled after ${run.attempt === 1 ? 'one attempt' : `${run.attempt} attempts`}${whatCame(ended, time)}`
  return `ended as ${run.status}${cause}`
}

/** Of a run that a later time of its job has ended. */
function whatCame(ended: readonly EndedAttempt[], time: Time): string {
  const { reason, reasonAt = null } = ended.findLast((attempt) => attempt.reasonAt !== null) ?? {}
  if (reasonAt === null) return ''
  const overlap: Overlap = reason === ATTEMPT_REASON.superseded ? 'buffer_latest' : 'cancel_running'
  return `: ${time(reasonAt)} came meanwhile, and overlap is ${overlap}`
}

const MAX_ERROR = 200
const shortened = (text: string): string => (text.length > MAX_ERROR ? `${text.slice(0, MAX_ERROR)}…` : text)

function waiting(found: Unsaid, at: string, time: Time): string {
  const waits = found.waits as Waits
  const run = runOf(found, at)
  const ahead = `${waits.isAheadComplete ? waits.ahead : `more than ${waits.ahead}`} ${waits.ahead === 1 ? 'run' : 'runs'}`
  switch (found.reason) {
    case 'jitter':
      return `${at} has come; with its jitter the job is due at ${time(found.dueAt)}.`
    case 'not_promoted':
      return `${at} is due and has not been decided yet.`
    case 'not_planned':
      return `The job was created by SQL and is not planned yet${found.by ? `; it is paused: ${found.by.reason}` : ''}.`
    case 'job_paused':
      return `The job was to run at ${at}, but is paused ${byWhom(found.by, time)}; it runs when it is resumed.`
    case 'queue_paused':
      return `${run} is ready, but the queue ${waits.queue} is paused ${byWhom(waits.queuePause, time)}.`
    case 'tenant_paused':
    case 'key_paused':
    case 'origin_paused': {
      const { kind = '', name = null } = waits.pause ?? {}
      const what = kind === 'origin' ? `calls to ${name} are` : `the ${kind}${name === null ? '' : ` ${name}`} is`
      return `${run} is not started while ${what} paused ${byWhom(waits.pause, time)}.`
    }
    case 'queue_limited':
      return `${run} is ready, behind ${ahead}, but the queue ${waits.queue} ${waits.queueLimit}.`
    case 'key_limited':
      return `${run} waits for ${waits.keyLimit ?? 'a slot of its key'}.`
    case 'origin_limited':
      return `${run} waits until ${time(waits.until)}: ${originLimitOf(found)}.`
    case 'circuit_open':
      return `${run} waits because calls to ${waits.circuit?.origin ?? 'its target'} fail (${waits.circuit?.reason ?? 'circuit_open'}); it is tried again at ${time(waits.until)}.`
    case 'blocked':
      return `${run} waits until the run ${waits.behind ?? 'before it'} has ended.`
    case 'dependency':
      return `${run} waits for ${jobsOf(waits.jobs, found.parent)}.`
    case 'ready': {
      const expected = waits.expectedStartAt
      const soon = expected === null ? waits.expectedStartNote : `it is expected to start at ${time(expected)}`
      return `${run} is ready, behind ${ahead} of the queue ${waits.queue}; ${soon ?? 'when it starts is not known'}.`
    }
    case 'redriven':
      return `${run} was opened again and starts at ${time(waits.until)}.`
    default: {
      const { attempt, status, failureClass } = waits.after ?? { attempt: 0, status: 'failed', failureClass: null }
      return `${run} waits until ${time(waits.until)}, after attempt ${attempt} ${status === 'failed' ? `failed${failureClass === null ? '' : ` (${failureClass})`}` : `was ${status}`}.`
    }
  }
}

/** By the limit that there is now: the one that put it aside may have been another. */
function originLimitOf({ origin, originLimit, isRateUsedUp }: Unsaid): string {
  const { maxRunning = null, rate = null } = originLimit ?? {}
  if (rate !== null && (maxRunning === null || isRateUsedUp))
    return `calls to ${origin} start at most ${rateInWords(rate)}`
  return `${origin} is limited to ${maxRunning} ${maxRunning === 1 ? 'run' : 'runs'} at a time, and so many are under way`
}

function jobsOf(waits: WaitsFor | null, parent: ExplainedParent | null): string {
  const { count, jobs } = waits ?? { count: 0, jobs: [] }
  const failed = jobs.find(({ hasFailed }) => hasFailed)
  const [first] = jobs
  if (failed)
    return parent?.canBeRetried === false
      ? `job ${failed.jobId}, which did not succeed and cannot be retried: it goes on when somebody triggers it`
      : `job ${failed.jobId}, which did not succeed: it goes on when that is retried, or when somebody triggers it`
  const paused = parent?.isPaused ? ', which is paused' : ''
  if (count === 1 && first) return `job ${first.jobId}${paused}`
  return first ? `${count} jobs, one of them ${first.jobId}${paused}` : 'other jobs'
}

function skipped({ reason, skip, by, run, ended, isOvertaken }: Unsaid, time: Time): string {
  switch (reason) {
    case 'overlap':
      if (isOvertaken)
        return `it was late, and of the times that had come by ${time(skip?.decidedAt ?? null)} the newest ran, ${skip?.overlappedWith}`
      return `the run ${skip?.overlappedWith ?? 'before it'} was still alive`
    case 'paused':
      return skip?.decidedAt === null
        ? `the job is paused ${byWhom(by, time)}, and what falls into a pause is left out unless the job is resumed with catch-up`
        : `the job was paused ${byWhom(by, time)}`
    case 'catch_up_expired':
      return `Belfry was away or late, and found it at ${time(skip?.decidedAt ?? null)}, when the catch-up policy no longer ran it`
    case 'start_deadline':
      return `it could not be started within the start deadline${run?.error ? ` (${shortened(run.error)})` : ''}`
    case 'on_limit':
      return `${run?.error ?? 'all slots of its key were taken'}, and onLimit is skip`
    case 'superseded':
      return `another time took its place before it could start${whatCame(ended, time)}`
    case 'dependency':
      return run?.error ? shortened(run.error) : 'a job that it follows did not end as it waits for'
    case 'canceled':
      if (by === null && ended.at(-1)?.reason === ATTEMPT_REASON.parent_failed)
        return `it was ${shortened(run?.error ?? 'canceled')}`
      return `${by === null ? 'it was canceled' : whoDid(by)} before it started${whatCame(ended, time)}`
    case 'dst_gap':
      return 'the clocks skip that time'
    default:
      return `it lies outside of the job's bounds`
  }
}

const CANCELED: Record<string, string> = {
  cancel: 'it was canceled',
  delete: 'its job was deleted',
  purge: 'its queue was emptied',
}

const whoDid = ({ action, actor }: Doer): string => `${CANCELED[action] ?? `there was a ${action}`} by ${actor}`

function willRun({ reason, dueAt, nominalAt, by }: Unsaid, at: string, time: Time): string {
  if (reason === 'job_paused') return `It would run at ${at}, but the job is paused ${byWhom(by, time)}.`
  const isLater = dueAt !== null && nominalAt !== null && dueAt.getTime() !== nominalAt.getTime()
  return `It will run at ${at}${isLater ? `, due at ${time(dueAt)} by its jitter` : ''}.`
}

function never({ reason, rule, by }: Unsaid, time: Time): string {
  switch (reason) {
    case 'not_created':
      return 'the job did not exist yet'
    case 'canceled':
      return `the job was canceled by ${by?.actor ?? 'somebody'} at ${time(by?.at ?? null)}`
    case 'max_runs':
      return 'the job has used up its maxRuns by then'
    case 'completed':
      return 'the schedule of the job was over by then'
    case 'one_off':
      return 'the job runs once'
    case 'dependency':
      return 'the job follows others, and has no times of its own'
    default:
      return rule ?? 'the schedule does not fire then'
  }
}

function around({ nearest }: Unsaid, time: Time): string {
  const { before, after } = nearest ?? { before: null, after: null }
  if (before && after) return `; the nearest times are ${time(before)} and ${time(after)}`
  if (before ?? after) return `; the ${before ? 'last time before' : 'first time after'} is ${time(before ?? after)}`
  return ''
}

function byWhom(by: Doer | null, time: Time): string {
  if (by === null) return 'by somebody'
  return `by ${by.actor} since ${time(by.at)}${by.reason === null ? '' : ` ("${by.reason}")`}`
}

function lengthOf(ms: number): string {
  if (ms < 1_000) return `${ms} ms`
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 360_000) / 10} h`
}
