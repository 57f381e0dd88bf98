import type { HttpTarget } from '../../job/definition.ts'
import type { FailureClass } from '../../job/states.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Announce, CallSignal } from './exchange.ts'
import type { OAuthTokens } from './oauth-tokens.ts'
import type { TargetUrl } from './target-url.ts'
import type { TraceParents } from './trace-parent.ts'
import type { Transport } from './transport.ts'

/** One attempt of a run whose target is an HTTP call. */
export interface HttpCall {
  target: HttpTarget
  /** Of the target, as far as it is known before its templates are filled in. */
  url: TargetUrl
  /** The body, unless the target has one of its own; never searched for templates, since it is data. */
  payload: unknown
  payloadRef?: string
  tenantId: number
  runId: string
  jobId: string
  nominalAt: Instant
  attempt: number
  /** The whole attempt ends here, whatever it is doing. */
  deadline: Instant
  signal: CallSignal | null
  /** Must hear that its first byte is about to be sent; null: nobody must. */
  announce: Announce | null
  /** Where a target that answered 202 with `Belfry-Callback: wait` reports the end. */
  callbackUrl?: string
  traceparent?: string
}

/** What is kept of the answer (`ResponseRecord`) is JSON already. */
export type HttpEnd =
  | { kind: 'succeeded'; statusCode: number; response: string }
  | { kind: 'waits'; statusCode: 202; response: string }
  | HttpFailure

export interface HttpFailure {
  kind: 'failed'
  failureClass: FailureClass
  error: string
  retryable: boolean
  retryAfterMs?: number
  statusCode: number | null
  response: string | null
  /** The request may have reached the target. */
  written: boolean
}

export type SigningSecrets = readonly { secret: Buffer }[]

export interface HttpDeps {
  clock: Clock
  secrets: { resolve(tenantId: number, names: string[]): Promise<Map<string, string>> }
  signingKeys: { known(tenantId: number): SigningSecrets | null; current(tenantId: number): Promise<SigningSecrets> }
  payloads: { get(tenantId: number, ref: string): Promise<{ bytes: Buffer; contentType: string } | null> }
  transport: Transport
  tokens: OAuthTokens
  traceParents: TraceParents
}
