import {
  type After,
  type Backoff,
  type Definition,
  HTTP_QUEUE,
  type RateLimit,
  type RetryPolicy,
} from '../job/definition.ts'
import type { Overlap } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { httpInput } from './http-input.ts'
import { onceInput, scheduleInput } from './schedule-input.ts'
import type { WhenContext } from './understand-when.ts'

const ms = (value: number): string => `${value}ms`

/** They are stored as they are written. */
const AS_WRITTEN = [
  ...(['payload', 'payloadRef', 'delivery', 'labels', 'name'] as const),
  ...(['priority', 'fairnessKey', 'unique', 'concurrency'] as const),
]

/** A stored definition as somebody could have written it: what an update is laid over. */
export function inputOf(definition: Definition, nominalAt: Instant | null): Record<string, unknown> {
  const { queue, http, retry, timeoutMs, startDeadlineMs, rateLimit, after, overlap, schedule, when } = definition
  return withoutUndefined({
    ...Object.fromEntries(AS_WRITTEN.map((field) => [field, definition[field]])),
    // Not named, so that it goes with the call when an update takes that away.
    queue: http !== undefined && queue === HTTP_QUEUE ? undefined : queue,
    http: http && httpInput(http),
    rateLimit: rateLimit && rateInput(rateLimit),
    retry: retry && retryInput(retry),
    timeout: timeoutMs === undefined ? undefined : ms(timeoutMs),
    startDeadline: startDeadlineMs === undefined ? undefined : ms(startDeadlineMs),
    ...(after !== undefined
      ? afterInput(after, overlap)
      : schedule !== undefined
        ? scheduleInput({ ...definition, schedule })
        : nominalAt === null
          ? {}
          : onceInput(new Date(nominalAt), when)),
  })
}

/** With a period as somebody would write it. */
function rateInput({ periodMs, ...rate }: RateLimit): Record<string, unknown> {
  return { ...rate, period: ms(periodMs) }
}

/** As it was written, but with ids where local names stood. */
function afterInput({ jobs, on, onParentFailure }: After, overlap?: Overlap): Record<string, unknown> {
  return withoutUndefined({ after: withoutUndefined({ jobs, on }), onParentFailure, overlap })
}

/** What the job's words meant when they were said, so that they keep meaning it. */
export function knownWords(definition: Definition, nominalAt: Instant | null): Pick<WhenContext, 'known'> {
  const { when: words, schedule, maxRuns } = definition
  if (words === undefined) return {}
  const { text, says = [] } = words
  if (schedule === undefined) {
    if (nominalAt === null) return {}
    return { known: { text, timezone: words.timezone ?? 'UTC', understood: { kind: 'once', at: nominalAt } } }
  }
  const startAt = 'every' in schedule ? schedule.anchor : says.includes('startAt') ? schedule.startAt : undefined
  const endAt = says.includes('endAt') ? schedule.endAt : undefined
  const understood = {
    kind: 'recurring' as const,
    cron: 'cron' in schedule ? [schedule.cron].flat() : null,
    every: 'every' in schedule ? schedule.every : null,
    ...(startAt === undefined ? {} : { startAt }),
    ...(endAt === undefined ? {} : { endAt }),
    ...(says.includes('maxRuns') && maxRuns !== undefined ? { maxRuns } : {}),
  }
  return { known: { text, timezone: schedule.timezone, understood } }
}

function retryInput({ maxAttempts, backoff, maxAgeMs }: RetryPolicy): Record<string, unknown> {
  return withoutUndefined({
    maxAttempts,
    maxAge: maxAgeMs === undefined ? undefined : ms(maxAgeMs),
    backoff: backoff && backoffInput(backoff),
  })
}

function backoffInput(backoff: Backoff): Record<string, unknown> {
  if (backoff.type === 'list') return { type: 'list', delays: backoff.delaysMs.map(ms), jitter: backoff.jitter }
  const { type, initialMs, jitter } = backoff
  return withoutUndefined({
    type,
    jitter,
    initial: ms(initialMs),
    factor: type === 'exponential' ? backoff.factor : undefined,
    max: type === 'fixed' ? undefined : ms(backoff.maxMs),
  })
}

const withoutUndefined = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
