import type { Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Backoff, RetryPolicy } from './definition.ts'

export const DEFAULT_MAX_ATTEMPTS = 5
export const DEFAULT_BACKOFF: Backoff = {
  type: 'exponential',
  initialMs: 5_000,
  factor: 2,
  maxMs: 3_600_000,
  jitter: 0.5,
}
/** A target may ask for patience, but not for more than a day. */
const MAX_RETRY_AFTER_MS = 86_400_000

export interface FailedRun {
  /** Attempts that failed and counted, this one included: at least 1. */
  failures: number
  /** Its nominal time, unless it was meant to be late. */
  agesFrom: Instant
  now: Instant
  /** What the target or the handler asked for; wins over the formula. */
  retryAfterMs?: number
}

type Chance = Pick<Random, 'float'>
/** No jitter shortens the backoff. */
const LONGEST: Chance = { float: () => 0 }

export type RetryDecision = { retry: true; delayMs: number } | { retry: false; reason: 'attempts_used' | 'too_old' }

/** The first limit reached stops: attempts, or the age that the next attempt would have. */
export function retryDecision(policy: RetryPolicy | undefined, run: FailedRun, random: Chance): RetryDecision {
  if (run.failures >= (policy?.maxAttempts ?? DEFAULT_MAX_ATTEMPTS)) return { retry: false, reason: 'attempts_used' }
  const delayMs =
    run.retryAfterMs === undefined
      ? backoffMs(run.failures, policy, random)
      : Math.min(Math.max(0, Math.round(run.retryAfterMs)), MAX_RETRY_AFTER_MS)
  if (policy?.maxAgeMs !== undefined && run.now + delayMs - run.agesFrom > policy.maxAgeMs) {
    return { retry: false, reason: 'too_old' }
  }
  return { retry: true, delayMs }
}

/** Whether another attempt may follow a failure at this instant, however long its backoff is. */
export const mayRetry = (policy: RetryPolicy | undefined, run: FailedRun): boolean =>
  retryDecision(policy, run, LONGEST).retry

/** How long to wait after the `failures`-th failure. */
export function backoffMs(failures: number, policy: RetryPolicy | undefined, random: Chance): number {
  const backoff = policy?.backoff ?? DEFAULT_BACKOFF
  return Math.round(ceilingMs(failures, backoff) * (1 - backoff.jitter * random.float()))
}

function ceilingMs(failures: number, backoff: Backoff): number {
  switch (backoff.type) {
    case 'exponential':
      return Math.min(backoff.maxMs, backoff.initialMs * backoff.factor ** (failures - 1))
    case 'linear':
      return Math.min(backoff.maxMs, backoff.initialMs * failures)
    case 'fixed':
      return backoff.initialMs
    case 'list':
      return backoff.delaysMs[Math.min(failures, backoff.delaysMs.length) - 1] ?? 0
  }
}
