import { formatDuration, type JobView } from '@belfry/engine'
import type { Static } from 'typebox'
import type { job } from './schemas/job.ts'

type JobJson = Static<typeof job>
type Recurring = Exclude<JobView['schedule'], null | { runAt: Date }>
type Backoff = NonNullable<NonNullable<JobView['retry']>['backoff']>

/** A job as the API shows it: times and durations as somebody could have written them, so that they can be sent back. */
export function jobJson({ schedule, retry, timeoutMs, ...view }: JobView): JobJson {
  return {
    ...view,
    schedule: scheduleJson(schedule),
    retry: retryJson(retry),
    timeout: duration(timeoutMs),
  }
}

const duration = (ms: number): string => formatDuration({ kind: 'clock', ms })

function scheduleJson(schedule: JobView['schedule']): JobJson['schedule'] {
  return schedule === null || 'runAt' in schedule ? schedule : recurringJson(schedule)
}

function recurringJson(schedule: Recurring): JobJson['schedule'] {
  const { timezone, endAt, catchUp } = schedule
  const startAt = 'cron' in schedule ? schedule.startAt : schedule.anchor
  return {
    ...('cron' in schedule ? { cron: cronJson(schedule.cron) } : { every: schedule.every }),
    timezone,
    ...(startAt === undefined ? {} : { startAt: new Date(startAt) }),
    ...(endAt === undefined ? {} : { endAt: new Date(endAt) }),
    ...(catchUp === undefined
      ? {}
      : { catchUp: { policy: catchUp.policy, window: duration(catchUp.windowMs), max: catchUp.max } }),
  }
}

const cronJson = (cron: string | readonly string[]): string | string[] => (typeof cron === 'string' ? cron : [...cron])

function retryJson(retry: JobView['retry']): JobJson['retry'] {
  if (retry === null) return null
  const { maxAttempts, backoff, maxAgeMs } = retry
  return {
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    ...(backoff === undefined ? {} : { backoff: backoffJson(backoff) }),
    ...(maxAgeMs === undefined ? {} : { maxAge: duration(maxAgeMs) }),
  }
}

function backoffJson(backoff: Backoff): NonNullable<NonNullable<JobJson['retry']>['backoff']> {
  const { type, jitter } = backoff
  if (type === 'list') return { type, delays: backoff.delaysMs.map(duration), jitter }
  const initial = duration(backoff.initialMs)
  if (type === 'fixed') return { type, initial, jitter }
  const max = duration(backoff.maxMs)
  return type === 'linear' ? { type, initial, max, jitter } : { type, initial, factor: backoff.factor, max, jitter }
}
