import { type Backoff, type Definition, HTTP_QUEUE, type RetryPolicy } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { httpInput } from './http-input.ts'

const ms = (value: number): string => `${value}ms`

/** A stored definition as somebody could have written it: what an update is laid over. */
export function inputOf(definition: Definition, nominalAt: Instant | null): Record<string, unknown> {
  const {
    queue,
    http,
    payload,
    payloadRef,
    retry,
    timeoutMs,
    startDeadlineMs,
    delivery,
    labels,
    name,
    overlap,
    jitterMs,
    maxRuns,
    priority,
    schedule,
  } = definition
  return withoutUndefined({
    // Not named, so that it goes with the call when an update takes that away.
    queue: http !== undefined && queue === HTTP_QUEUE ? undefined : queue,
    http: http && httpInput(http),
    payload,
    payloadRef,
    delivery,
    labels,
    name,
    overlap,
    maxRuns,
    priority,
    retry: retry && retryInput(retry),
    timeout: timeoutMs === undefined ? undefined : ms(timeoutMs),
    startDeadline: startDeadlineMs === undefined ? undefined : ms(startDeadlineMs),
    jitter: jitterMs === undefined ? undefined : ms(jitterMs),
    ...(schedule === undefined
      ? { runAt: nominalAt === null ? undefined : new Date(nominalAt) }
      : scheduleInput(schedule)),
  })
}

function scheduleInput(schedule: NonNullable<Definition['schedule']>): Record<string, unknown> {
  const { catchUp, endAt, timezone } = schedule
  return {
    timezone,
    endAt: endAt === undefined ? undefined : new Date(endAt),
    catchUp: catchUp && { policy: catchUp.policy, window: ms(catchUp.windowMs), max: catchUp.max },
    ...('cron' in schedule
      ? { cron: schedule.cron, startAt: schedule.startAt === undefined ? undefined : new Date(schedule.startAt) }
      : { every: schedule.every, startAt: new Date(schedule.anchor) }),
  }
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
