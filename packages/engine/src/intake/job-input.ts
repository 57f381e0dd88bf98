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
  overlap?: 'allow' | 'skip'
  catchUp?: { policy?: 'latest' | 'all' | 'none'; window?: string; max?: number }
  jitter?: string
  startDeadline?: string
  delivery?: 'at_least_once' | 'at_most_once'
  labels?: Record<string, string>
  idempotencyKey?: string
  idempotencyTtl?: string
}
