import { createHmac, randomBytes } from 'node:crypto'

export const JOB_ID = '019a0b1c-2d3e-7004-8f5a-6b7c8d9e0f1a'
export const NOMINAL_AT = new Date('2026-12-01T08:00:00.000Z')
export const RUN_ID = `${JOB_ID}.${NOMINAL_AT.getTime().toString(36)}`

export const newSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** What Belfry sends beside the body, written down here a second time, from the specification. */
export function signedHeaders(
  secrets: string[],
  body: string | Uint8Array,
  { at = Date.now(), attempt = 1 }: { at?: number; attempt?: number } = {},
): Record<string, string> {
  const id = RUN_ID.replace('.', '_')
  const timestamp = String(Math.floor(at / 1_000))
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
  })
  return {
    'content-type': 'application/json',
    'idempotency-key': RUN_ID,
    'belfry-run-id': RUN_ID,
    'belfry-job-id': JOB_ID,
    'belfry-attempt': String(attempt),
    'belfry-nominal-at': NOMINAL_AT.toISOString(),
    'belfry-callback-url': 'https://belfry.example.com/v1/callbacks/token',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
