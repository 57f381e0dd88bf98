import { ReceiverError } from './receiver-error.ts'

/** A call that Belfry made, checked. */
export interface ReceivedCall {
  /** The same in every attempt: what to recognise a repetition by. */
  readonly runId: string
  readonly jobId: string
  /** From 1. */
  readonly attempt: number
  /** The instant that the run was meant for. */
  readonly nominalAt: Date
  /** Where to report the end after answering `later()`. */
  readonly callbackUrl: string | null
  /** The bytes as they came, and were signed. */
  readonly body: Uint8Array
  text(): string
  json<Body = unknown>(): Body
}

export type RawBody = string | Uint8Array | ArrayBuffer

export function rawBytes(body: RawBody): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  if (body instanceof Uint8Array) return body
  throw new ReceiverError('body_not_raw', 'the body was parsed already; give the bytes as they came')
}

const WEBHOOK_ID = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_(-?[0-9a-z]{1,11})$/

/**
 * What the signed id says: the run, and with it the job and the nominal time. The headers that say the same in
 * other words are not signed, so they are not asked.
 */
export function readWebhookId(text: string): Pick<ReceivedCall, 'runId' | 'jobId' | 'nominalAt'> | null {
  const [, jobId, digits] = WEBHOOK_ID.exec(text) ?? []
  if (jobId === undefined || digits === undefined) return null
  return { runId: `${jobId}.${digits}`, jobId, nominalAt: new Date(Number.parseInt(digits, 36)) }
}

export function receivedCall(
  facts: Pick<ReceivedCall, 'runId' | 'jobId' | 'nominalAt' | 'attempt' | 'callbackUrl'>,
  body: Uint8Array,
): ReceivedCall {
  const text = () => new TextDecoder().decode(body)
  return { ...facts, body, text, json: <Body>() => JSON.parse(text()) as Body }
}
