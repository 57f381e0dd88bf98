/** Each says which status a request gets that fails so; `null`: a mistake of the receiver's own, told to its developer. */
const STATUS = {
  /** A header that Belfry always sends is not there: somebody else calls, or a proxy removed it. */
  missing_header: 400,
  /** It is there and says nothing that Belfry would say. */
  malformed_header: 400,
  /** Belfry signs each attempt anew, and tries again on 408: held up once is no reason to give up. */
  too_old: 408,
  too_new: 408,
  wrong_signature: 401,
  body_too_large: 413,
  /** Something before the receiver parsed the body, so that nobody knows any more which bytes were signed. */
  body_not_raw: 500,
  malformed_secret: 500,
  /** The call names a callback outside the origin that the receiver allows. */
  foreign_callback: 403,
  callback_failed: null,
  no_transaction: null,
} as const

export type ReceiverErrorCode = keyof typeof STATUS

export class ReceiverError extends Error {
  override readonly name = 'ReceiverError'
  readonly code: ReceiverErrorCode

  constructor(code: ReceiverErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  /** What to answer a request with that failed so. */
  get status(): number {
    return STATUS[this.code] ?? 500
  }
}
