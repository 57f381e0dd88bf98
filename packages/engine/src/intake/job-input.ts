import type { Overlap } from '../job/states.ts'

/** A day, days or instants from and to, whatever a cron would fire at, or the days of a calendar of the tenant. */
export type ExclusionInput =
  | string
  | { from: Date | string; to: Date | string }
  | { cron: string }
  | { calendar: string }

/** A job as people write it. `docs/reference/jobs.md` says what each field means; `understandJob` checks it. */
export interface JobInput {
  name?: string
  tenant?: string
  /** Exactly one of runAt, delay, cron, every, when and after; none means now. */
  runAt?: Date | string
  delay?: string
  /** Several fire whenever one of them does. */
  cron?: string | readonly string[]
  /** A duration, or a repeating interval such as `R5/2026-12-01T00:00:00Z/PT15M`. */
  every?: string
  /** English: `every weekday at 9am`, `in 10 minutes`. */
  when?: string
  timezone?: string
  startAt?: Date | string
  endAt?: Date | string
  maxRuns?: number
  /** Days and times at which a recurring job does not fire. */
  exclude?: readonly ExclusionInput[]
  onExcluded?: 'skip' | 'next_business_day'
  /** What a change of the clocks does to a cron; without it the hour field decides. */
  dst?: { gap?: 'after' | 'skip'; overlap?: 'first' | 'last' | 'both' }
  /** Jobs that it waits for: ids or, in one call, their refs. With recurring jobs it runs after each of their runs. */
  after?: { jobs: readonly string[]; on?: 'success' | 'failure' | 'finish' }
  /** What becomes of it when one of those does not succeed: `cancel` unless another is said. */
  onParentFailure?: 'cancel' | 'run' | 'block'
  queue?: string
  /** A call to make. Its texts may hold `{{nominalAt}}`, `{{runId}}`, `{{attempt}}` and `{{secret:name}}`. */
  http?: {
    url: string
    method?: string
    headers?: Record<string, string>
    /** A text, bytes as `{ base64 }`, or any JSON value; without it the payload is the body. */
    body?: unknown
    auth?: {
      type?: 'oauth2'
      tokenUrl: string
      clientId: string
      clientSecret: string
      scope?: string
      audience?: string
    }
    succeedOn?: readonly (string | number)[]
    retryOn?: readonly (string | number)[]
    failOn?: readonly (string | number)[]
  }
  payload?: unknown
  payloadRef?: string
  retry?: {
    maxAttempts?: number
    backoff?: {
      type?: 'exponential' | 'linear' | 'fixed' | 'list'
      initial?: string
      factor?: number
      max?: string
      jitter?: number
      delays?: readonly string[]
    }
    maxAge?: string
  }
  timeout?: string
  priority?: number
  /** Runs of one queue that differ in it take turns, however many of one there are. In a queue that tenants share, tenants do. */
  fairnessKey?: string
  overlap?: Overlap
  catchUp?: { policy?: 'latest' | 'all' | 'none'; window?: string; max?: number }
  jitter?: string
  startDeadline?: string
  delivery?: 'at_least_once' | 'at_most_once'
  /** How many runs may be performed at a time: of the job, or of all jobs that name the key. */
  concurrency?: { limit: number; key?: string; onLimit?: 'wait' | 'skip' | 'cancel_oldest' }
  /** How many runs may start in a period, and how many of them at once (as many as `limit`). A run counts as `cost` (1). */
  rateLimit?: { limit: number; period: string; burst?: number; cost?: number; key?: string }
  labels?: Record<string, string>
  idempotencyKey?: string
  idempotencyTtl?: string
  /** While a job with this key is queued, active, or either, no other is made under it. */
  unique?: { key: string; while?: 'queued' | 'active' | 'both'; onConflict?: 'keep' | 'replace' | 'reject' }
}

/** One of several that are created in one call: `ref` is a name by which others of the call wait for it. */
export interface JobOfCall extends JobInput {
  ref?: string
}
