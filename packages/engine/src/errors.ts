/**
 * Every error a caller can meet, in one catalogue: the code is stable, the status is what HTTP answers.
 * Expected outcomes (`'lease_lost'`, `'already_finished'`) are return values where a caller decides on them;
 * they are thrown only where the caller asked for something that cannot be done.
 */
export const ERRORS = {
  invalid_job: { status: 422, title: 'The job cannot be understood' },
  invalid_argument: { status: 422, title: 'An argument cannot be understood' },
  invalid_option: { status: 422, title: 'An option cannot be understood' },
  invalid_json: { status: 400, title: 'The body is not JSON' },
  invalid_request: { status: 422, title: 'The request cannot be understood' },
  unauthorized: { status: 401, title: 'An API key is needed' },
  forbidden: { status: 403, title: 'The key may not do this' },
  payload_too_large: { status: 413, title: 'The payload is too large' },
  body_too_large: { status: 413, title: 'The request is too large' },
  not_found: { status: 404, title: 'There is no such thing' },
  method_not_allowed: { status: 405, title: 'The route has no such method' },
  unsupported_media_type: { status: 415, title: 'The body is of a type that cannot be read' },
  request_timeout: { status: 408, title: 'The request took too long to arrive' },
  version_mismatch: { status: 412, title: 'It has been changed meanwhile' },
  rate_limited: { status: 429, title: 'Too many requests' },
  quota_exceeded: { status: 429, title: 'A quota of the tenant is used up' },
  queue_full: { status: 429, title: 'Too much waits in the queue' },
  tenant_full: { status: 429, title: 'Too much of the tenant waits' },
  queue_kind: { status: 409, title: 'The queue is of the other kind' },
  calendar_in_use: { status: 409, title: 'Jobs still name the calendar' },
  not_empty: { status: 409, title: 'It still holds something' },
  name_taken: { status: 409, title: 'The name is taken' },
  unique_conflict: { status: 409, title: 'Another job has the unique key' },
  idempotency_mismatch: { status: 422, title: 'The idempotency key was used with another request' },
  in_progress: { status: 409, title: 'The same request is still under way' },
  already_finished: { status: 409, title: 'It has finished already' },
  already_due: { status: 409, title: 'The job has become a run' },
  already_handled: { status: 409, title: 'The queue has a handler already' },
  not_retryable: { status: 409, title: 'Such a run cannot be retried' },
  overlap: { status: 409, title: 'A run of the job is still alive' },
  lease_lost: { status: 409, title: 'The lease is no longer live' },
  stopped: { status: 503, title: 'Belfry has been stopped' },
  database_unavailable: { status: 503, title: 'The database cannot be reached' },
  migration_failed: { status: 500, title: 'The schema cannot be brought up to date' },
  schema_too_new: { status: 500, title: 'The schema is newer than this program' },
  internal_error: { status: 500, title: 'Something went wrong inside Belfry' },
  cannot_decrypt: { status: 500, title: 'What was sealed cannot be opened' },
  embedded_database: { status: 500, title: 'The embedded database cannot be started' },
} as const

export type ErrorCode = keyof typeof ERRORS

/** One thing that is wrong with an input: where, what, and what would be right. */
export interface Complaint {
  path: string
  message: string
  suggestion?: string
}

export class BelfryError extends Error {
  override readonly name = 'BelfryError'
  readonly code: ErrorCode
  readonly status: number
  readonly complaints: readonly Complaint[]
  /** When it may be tried again, where that can be said. */
  readonly retryAfterSeconds: number | null

  constructor(
    code: ErrorCode,
    message: string,
    details: { complaints?: readonly Complaint[]; cause?: unknown; retryAfterSeconds?: number } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.status = ERRORS[code].status
    this.complaints = details.complaints ?? []
    this.retryAfterSeconds = details.retryAfterSeconds ?? null
  }
}

/** One thing is wrong with an input; `said` where that is told in another way than behind its path. */
export const refusal = (code: ErrorCode, path: string, message: string, said = `${path}: ${message}`): BelfryError =>
  new BelfryError(code, said, { complaints: [{ path, message }] })

/** A broken invariant is a bug in Belfry: it stops the step, in production too. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${message}`)
}
