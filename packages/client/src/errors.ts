import type { ErrorCode, Problem } from './wire.ts'

/** What Belfry calls its errors; `unknown_error` is an answer that is not Belfry's, such as a gateway's own page. */
export type ApiErrorCode = ErrorCode | 'unknown_error'

export interface ApiErrorFields<Code extends ApiErrorCode = ApiErrorCode> {
  code: Code
  status: number
  title: string
  detail: string
  errors?: Problem['errors']
  requestId: string
  retryAfterMs: number | null
}

/** The server answered, and the answer is no. `code` is the stable part; `detail` is for people. */
export class BelfryApiError<Code extends ApiErrorCode = ApiErrorCode> extends Error {
  override readonly name = 'BelfryApiError'
  readonly code: Code
  /** The HTTP status. */
  readonly status: number
  /** What the code means. */
  readonly title: string
  /** What went wrong this time. */
  readonly detail: string
  /** Which fields of the request are wrong, and how; empty if it is not about fields. */
  readonly errors: NonNullable<Problem['errors']>
  /** How the server's log names the request. */
  readonly requestId: string
  /** How long the server asked to wait; null: it did not say. */
  readonly retryAfterMs: number | null

  constructor(fields: ApiErrorFields<Code>) {
    super(`${fields.code}: ${fields.detail}`)
    this.code = fields.code
    this.status = fields.status
    this.title = fields.title
    this.detail = fields.detail
    this.errors = fields.errors ?? []
    this.requestId = fields.requestId
    this.retryAfterMs = fields.retryAfterMs
  }

  /** `if (BelfryApiError.is(error, 'name_taken')) …` */
  static is<Code extends ApiErrorCode>(error: unknown, ...codes: Code[]): error is BelfryApiError<Code> {
    return error instanceof BelfryApiError && (codes as ApiErrorCode[]).includes(error.code)
  }
}

/**
 * No answer arrived: nobody listens, the connection broke, or it took too long. Whether the server did what was asked is
 * unknown, unless `wasSent` is false. `cause` is what `fetch` threw.
 */
export class BelfryConnectionError extends Error {
  override readonly name = 'BelfryConnectionError'
  readonly requestId: string
  readonly isTimeout: boolean
  readonly wasSent: boolean

  constructor(message: string, details: { requestId: string; isTimeout: boolean; wasSent: boolean; cause: unknown }) {
    super(message, { cause: details.cause })
    this.requestId = details.requestId
    this.isTimeout = details.isTimeout
    this.wasSent = details.wasSent
  }
}
