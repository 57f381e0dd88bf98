import { systemRuntime } from '../runtime/runtime.ts'
import { type HeadersLike, headerOf } from './header-of.ts'
import { type RawBody, type ReceivedCall, rawBytes, readWebhookId, receivedCall } from './received-call.ts'
import { ReceiverError } from './receiver-error.ts'
import { isSigned } from './signatures.ts'

export interface VerifyInput {
  /** As `GET /v1/signing-keys` shows it; several while secrets are being changed. */
  secret: string | readonly string[]
  headers: HeadersLike
  /** As it came, before anything parsed it. */
  body: RawBody
  /** How far `webhook-timestamp` may be off, either way. 300. */
  toleranceSeconds?: number
  now?: Date
}

const DEFAULT_TOLERANCE_SECONDS = 300
const SECONDS = /^\d{1,12}$/
const ATTEMPT = /^[1-9]\d{0,8}$/

/**
 * Whether Belfry made this call, lately; throws a `ReceiverError` otherwise. Run, job, nominal time and body are what was
 * signed. `attempt` and `callbackUrl` are headers beside the signature: TLS protects them, the signature does not.
 */
export async function verify(input: VerifyInput): Promise<ReceivedCall> {
  const { headers } = input
  const webhookId = demand(headers, 'webhook-id')
  const timestamp = demand(headers, 'webhook-timestamp')
  const signatures = demand(headers, 'webhook-signature')
  const run = readWebhookId(webhookId)
  if (run === null) throw malformed('webhook-id', 'is not the id of a run')
  if (!SECONDS.test(timestamp)) throw malformed('webhook-timestamp', 'is not a number of seconds')
  const body = rawBytes(input.body)
  if (!(await isSigned(secretsOf(input.secret), `${webhookId}.${timestamp}.`, body, signatures))) {
    throw new ReceiverError('wrong_signature', 'none of the signatures is that of a known secret over these bytes')
  }
  // After the signature, so that only Belfry learns how the clocks compare.
  checkAge(Number(timestamp), input)
  const attempt = headerOf(headers, 'belfry-attempt') ?? '1'
  if (!ATTEMPT.test(attempt)) throw malformed('belfry-attempt', 'is not a number from 1')
  return receivedCall({ ...run, attempt: Number(attempt), callbackUrl: headerOf(headers, 'belfry-callback-url') }, body)
}

function checkAge(timestamp: number, { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now }: VerifyInput): void {
  const age = (now?.getTime() ?? systemRuntime.now()) / 1_000 - timestamp
  // So that a tolerance that is no number allows nothing.
  if (!(age <= toleranceSeconds)) {
    throw new ReceiverError('too_old', `signed ${Math.round(age)} s ago; ${toleranceSeconds} s are allowed`)
  }
  if (-age > toleranceSeconds) {
    throw new ReceiverError('too_new', `signed ${Math.round(-age)} s from now; ${toleranceSeconds} s are allowed`)
  }
}

function secretsOf(secret: VerifyInput['secret'] | undefined): readonly string[] {
  const secrets = typeof secret === 'string' ? [secret] : (secret ?? [])
  if (secrets.length > 0) return secrets
  throw new ReceiverError('malformed_secret', 'there is no secret to check signatures with')
}

function demand(headers: HeadersLike, name: string): string {
  const value = headerOf(headers, name)
  if (value === null) throw new ReceiverError('missing_header', `${name} is missing`)
  return value
}

function malformed(name: string, message: string): ReceiverError {
  return new ReceiverError('malformed_header', `${name} ${message}`)
}
