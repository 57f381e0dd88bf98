import { type DescribedJob, formatDuration, type JobView } from '@belfry/engine'
import type { Static } from 'typebox'
import type { describedJob, job } from './schemas/job.ts'

type JobJson = Static<typeof job>
type DescribedJson = Static<typeof describedJob>
type Backoff = NonNullable<NonNullable<JobView['retry']>['backoff']>

/** A job as the API shows it: times and durations as somebody could have written them, so that they can be sent back. */
export function jobJson({ retry, timeoutMs, ...view }: JobView): JobJson {
  return { ...view, retry: retryJson(retry), timeout: duration(timeoutMs) }
}

export function describedJobJson({ understoodAs, expression, timezone, times, ...view }: DescribedJob): DescribedJson {
  return { ...jobJson(view), understoodAs, expression, timezone, times }
}

const duration = (ms: number): string => formatDuration({ kind: 'clock', ms })

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
