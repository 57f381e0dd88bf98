/** A job as people write it. `docs/reference/jobs.md` says what each field means; `understandJob` checks it. */
export interface JobInput {
  name?: string
  tenant?: string
  /** Exactly one of runAt, delay, cron and every; none means now. */
  runAt?: Date | string
  delay?: string
  cron?: string
  every?: string
  timezone?: string
  startAt?: Date | string
  endAt?: Date | string
  maxRuns?: number
  queue?: string
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
  overlap?: 'allow' | 'skip'
  catchUp?: { policy?: 'latest' | 'all' | 'none'; window?: string; max?: number }
  jitter?: string
  startDeadline?: string
  delivery?: 'at_least_once' | 'at_most_once'
  labels?: Record<string, string>
  idempotencyKey?: string
  idempotencyTtl?: string
}
