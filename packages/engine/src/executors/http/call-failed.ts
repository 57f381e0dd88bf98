import type { FailureClass } from '../../job/states.ts'

/** A call that failed before its request was sent, in a way that already has a class. */
export class CallFailed extends Error {
  override readonly name = 'CallFailed'
  readonly failureClass: FailureClass
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined

  constructor(
    failureClass: FailureClass,
    message: string,
    retry: { retryable: boolean; afterMs?: number | undefined },
  ) {
    super(message)
    this.failureClass = failureClass
    this.retryable = retry.retryable
    this.retryAfterMs = retry.afterMs
  }
}

/** A target that may not be called, or cannot be. The same call would fail again, so it is not repeated. */
export function invalidTarget(message: string): CallFailed {
  return new CallFailed('invalid_target', message, { retryable: false })
}
