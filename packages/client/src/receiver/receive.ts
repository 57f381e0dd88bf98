import { Answer, answerOf, problem } from './answer.ts'
import type { HeadersLike } from './header-of.ts'
import type { RawBody, ReceivedCall } from './received-call.ts'
import { ReceiverError } from './receiver-error.ts'
import { type VerifyInput, verify } from './verify.ts'

export interface ReceiverOptions extends Pick<VerifyInput, 'secret' | 'toleranceSeconds'> {
  /** Larger bodies are refused unread. 10 MiB, which is what Belfry sends at most. */
  maxBytes?: number
  /** Such as `https://belfry.example.com`: callbacks elsewhere are refused. */
  callbackOrigin?: string
  /** Told of everything that is not a success, for the receiver's own log; `call` is null when it was refused. */
  onError?(error: unknown, call: ReceivedCall | null): void
}

export type ReceiverHandler = (call: ReceivedCall) => unknown

export interface RawRequest {
  headers: HeadersLike
  /** Read only when it is needed, by what the framework has for it. */
  readBody(maxBytes: number): Promise<RawBody>
}

export const DEFAULT_MAX_BYTES = 10 * 1024 * 1024

/** What all adapters do: check, perform, and say it so that Belfry understands. Never throws. */
export async function receive(
  request: RawRequest,
  options: ReceiverOptions,
  handler: ReceiverHandler,
): Promise<Answer> {
  let call: ReceivedCall | null = null
  try {
    const body = await request.readBody(options.maxBytes ?? DEFAULT_MAX_BYTES)
    call = allowed(await verify({ ...options, headers: request.headers, body }), options)
    return answerOf(await handler(call))
  } catch (thrown) {
    if (thrown instanceof Answer) return thrown
    tell(options, thrown, call)
    if (call === null) return refusal(thrown)
    return problem(500, thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function allowed(call: ReceivedCall, { callbackOrigin }: ReceiverOptions): ReceivedCall {
  if (callbackOrigin === undefined || call.callbackUrl === null) return call
  if (URL.canParse(call.callbackUrl) && new URL(call.callbackUrl).origin === new URL(callbackOrigin).origin) return call
  throw new ReceiverError('foreign_callback', `the callback is not at ${callbackOrigin}`)
}

/** Whoever was not recognised learns only what Belfry's history needs to explain it. */
function refusal(error: unknown): Answer {
  if (!(error instanceof ReceiverError)) return problem(500, 'the request could not be read')
  return problem(error.status, `${error.code}: ${error.message}`)
}

function tell({ onError }: ReceiverOptions, error: unknown, call: ReceivedCall | null): void {
  try {
    onError?.(error, call)
  } catch {
    // A log that fails is no reason to perform the run again.
  }
}
