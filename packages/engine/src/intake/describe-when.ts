import type { After, IntervalSpec, ResolvedSpec, ScheduleSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { sentenceOf, sentenceOfOnce } from '../schedule/english/sentence-of.ts'
import { type FireTimeText, localTimeOf } from '../schedule/local-time.ts'
import { END_OF_TIME, fireTimesIn, type Schedule } from '../schedule/schedule.ts'
import type { When } from './understand-when.ts'

/** When a job runs, said back to whoever asked for it. */
export interface Description {
  /** One sentence. */
  understoodAs: string
  /** The cron (several joined by ` | `), the interval, or the instant; null: now. */
  expression: string | null
  timezone: string
  /** The next times, on the clock of UTC and of the zone. */
  times: FireTimeText[]
}

const USUAL_TIMES = 5
const NOW: Description = { understoodAs: 'now', expression: null, timezone: 'UTC', times: [] }

/** The schedule that a recurring job goes by. */
interface Compiled {
  spec: ResolvedSpec
  schedule: Schedule
}

/** Before there was a run. Of a recurring job, the times after an instant. */
export function describeWhen(when: When, compiled: Compiled | null, { after }: { after: Instant }): Description {
  if (when.kind === 'now') return NOW
  if (when.kind === 'once') return describeOnce(when.at, when.words?.timezone ?? 'UTC', 'to come')
  const most = Math.min(USUAL_TIMES, when.maxRuns ?? USUAL_TIMES)
  const times = compiled === null ? [] : fireTimes(compiled, { after, count: most })
  return describeRecurring(when.schedule, when.maxRuns, times)
}

/** A job that waits for others. */
export function describeAfter({ jobs, batch, on }: After, kind: 'recurring' | 'immediate' | 'delayed'): Description {
  const whose =
    batch !== undefined ? `all jobs of batch ${batch}` : jobs.length === 1 ? `job ${jobs[0]}` : `${jobs.length} jobs`
  const wanted = on ?? 'success'
  const ends = { success: 'succeeds', failure: 'fails', finish: 'finishes' }[wanted]
  const plural = { success: 'have succeeded', failure: 'have failed', finish: 'have finished' }[wanted]
  const isOne = batch === undefined && jobs.length === 1
  const understoodAs =
    kind === 'recurring'
      ? `each time ${isOne ? `${whose} ${ends}` : `a run of ${whose} ${ends}, once per nominal time`}`
      : isOne
        ? `when ${whose} ${ends}`
        : `when ${whose} ${plural}`
  return { understoodAs, expression: null, timezone: 'UTC', times: [] }
}

/** One that is over has no time to come. */
export function describeOnce(at: Instant | null, timezone: string, state: 'to come' | 'over'): Description {
  if (at === null) return NOW
  const text = localTimeOf({ cron: '* * * * *', timezone }, at)
  return {
    understoodAs: sentenceOfOnce(at, timezone),
    expression: text.utc,
    timezone,
    times: state === 'to come' ? [{ utc: text.utc, local: text.local }] : [],
  }
}

export function describeRecurring(schedule: ScheduleSpec, maxRuns: number | null, times: FireTimeText[]): Description {
  return {
    understoodAs: maxRuns === null ? sentenceOf(schedule) : `${sentenceOf(schedule)}, ${often(maxRuns)}`,
    expression: expressionOf(schedule),
    timezone: schedule.timezone,
    times,
  }
}

export const fireTimes = (
  { spec, schedule }: Compiled,
  { after, count }: { after: Instant; count: number },
): FireTimeText[] => fireTimesIn(schedule, after + 1, END_OF_TIME, count).map((at) => localTimeOf(spec, at))

/** The canonical text, as it could be sent. */
function expressionOf(schedule: ScheduleSpec): string {
  if ('every' in schedule) return intervalText(schedule)
  return typeof schedule.cron === 'string' ? schedule.cron : schedule.cron.join(' | ')
}

/** A repeating interval where it says how often, else the duration. */
export function intervalText({ every, anchor, count }: IntervalSpec): string {
  return count === undefined ? every : `R${count}/${new Date(anchor).toISOString()}/${every}`
}

const often = (maxRuns: number): string => (maxRuns === 1 ? 'once' : `${maxRuns} times`)
