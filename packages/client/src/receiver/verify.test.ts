import { expect, test } from 'vitest'
import { JOB_ID, NOMINAL_AT, newSecret, RUN_ID, signedHeaders } from '../../test/receiver-signing.ts'
import type { ReceiverErrorCode } from './receiver-error.ts'
import { type VerifyInput, verify } from './verify.ts'

const BODY = '{"to":"ada@example.org","text":"straße ✓"}'

function setup({ at, attempt = 1 }: { at?: number; attempt?: number } = {}) {
  const secret = newSecret()
  const headers = signedHeaders([secret], BODY, { attempt, ...(at === undefined ? {} : { at }) })
  const refused = (code: ReceiverErrorCode, input: Partial<VerifyInput>) =>
    expect(verify({ secret, headers, body: BODY, ...input }), code).rejects.toMatchObject({
      name: 'ReceiverError',
      code,
    })
  return { secret, headers, refused }
}

test('what Belfry signed is recognised, and says which run it is', async () => {
  const { secret, headers } = setup({ attempt: 3 })
  const call = await verify({ secret, headers, body: BODY })
  expect(call).toMatchObject({ runId: RUN_ID, jobId: JOB_ID, nominalAt: NOMINAL_AT, attempt: 3 })
  expect(call.callbackUrl).toBe('https://belfry.example.com/v1/callbacks/token')
  expect(call.text()).toBe(BODY)
  expect(call.json()).toEqual({ to: 'ada@example.org', text: 'straße ✓' })
  expect(Buffer.from(call.body).equals(Buffer.from(BODY))).toBe(true)
})

test('body and headers may come in any form that frameworks have them in', async () => {
  const { secret, headers } = setup()
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  const bytes = new TextEncoder().encode(BODY)
  for (const input of [
    { headers: new Headers(headers), body: BODY },
    { headers: upper, body: Buffer.from(BODY) },
    { headers: { ...headers, 'webhook-id': [headers['webhook-id'] as string] }, body: bytes.buffer },
  ]) {
    expect((await verify({ secret, ...input })).runId).toBe(RUN_ID)
  }
})

test('a call without a body is signed too', async () => {
  const secret = newSecret()
  expect((await verify({ secret, headers: signedHeaders([secret], ''), body: '' })).body).toHaveLength(0)
})

test('bytes that are no text are given as they came', async () => {
  const secret = newSecret()
  const body = Uint8Array.from([0, 255, 254, 128, 10])
  expect((await verify({ secret, headers: signedHeaders([secret], body), body })).body).toEqual(body)
})

test('during a rotation either secret will do, and a receiver may know both', async () => {
  const [older, newer, other] = [newSecret(), newSecret(), newSecret()]
  const headers = signedHeaders([newer, older], BODY)
  for (const secret of [older, newer, [other, newer], [older, other]]) {
    expect((await verify({ secret, headers, body: BODY })).runId).toBe(RUN_ID)
  }
  await expect(verify({ secret: other, headers, body: BODY })).rejects.toMatchObject({ code: 'wrong_signature' })
})

test('a signature of another kind beside ours does no harm', async () => {
  const { secret, headers } = setup()
  const signatures = `v1a,${'A'.repeat(88)} nonsense v1,@@@ ${headers['webhook-signature']}`
  expect((await verify({ secret, headers: { ...headers, 'webhook-signature': signatures }, body: BODY })).runId).toBe(
    RUN_ID,
  )
})

test('whatever was signed cannot be changed', async () => {
  const { headers, refused } = setup()
  const other = RUN_ID.replace('.', '_').replace('019a', '019b')
  await refused('wrong_signature', { body: `${BODY} ` })
  await refused('wrong_signature', { headers: { ...headers, 'webhook-id': other } })
  const later = String(Number(headers['webhook-timestamp']) + 1)
  await refused('wrong_signature', { headers: { ...headers, 'webhook-timestamp': later } })
  await refused('wrong_signature', { secret: newSecret() })
  const [version, base64 = ''] = (headers['webhook-signature'] as string).split(',')
  for (const signature of [`v2,${base64}`, `${version},${base64.slice(0, 20)}`, `${version},`, ',', base64]) {
    await refused('wrong_signature', { headers: { ...headers, 'webhook-signature': signature } })
  }
})

test('run, job and nominal time come from what was signed, whatever the headers beside it say', async () => {
  const { secret, headers } = setup()
  const forged = {
    'belfry-run-id': 'x',
    'belfry-job-id': 'y',
    'idempotency-key': 'z',
    'belfry-nominal-at': '1999-01-01T00:00:00Z',
  }
  const call = await verify({ secret, headers: { ...headers, ...forged }, body: BODY })
  expect(call).toMatchObject({ runId: RUN_ID, jobId: JOB_ID, nominalAt: NOMINAL_AT })
})

test('a call that was signed too long ago, or in the future, is refused', async () => {
  const at = Date.UTC(2026, 0, 1)
  const { secret, headers, refused } = setup({ at })
  const now = (seconds: number) => new Date(at + seconds * 1_000)
  for (const seconds of [-300, 0, 300]) await verify({ secret, headers, body: BODY, now: now(seconds) })
  await refused('too_old', { now: now(301) })
  await refused('too_new', { now: now(-301) })
  await verify({ secret, headers, body: BODY, now: now(301), toleranceSeconds: 302 })
  await refused('too_old', { now: now(0), toleranceSeconds: Number.NaN })
  // Without a time it is that of the machine.
  await refused('too_old', {})
})

test('each header that Belfry always sends must be there, and be as Belfry writes it', async () => {
  const { headers, refused } = setup()
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    const { [name]: _, ...rest } = headers
    await refused('missing_header', { headers: rest })
    await refused('missing_header', { headers: { ...headers, [name]: '' } })
  }
  for (const id of ['msg_1', RUN_ID, `${RUN_ID.replace('.', '_')}_1`, `../${RUN_ID}`]) {
    await refused('malformed_header', { headers: { ...headers, 'webhook-id': id } })
  }
  for (const timestamp of ['soon', '1e9', '-5', '1.5', '9'.repeat(30)]) {
    await refused('malformed_header', { headers: { ...headers, 'webhook-timestamp': timestamp } })
  }
  await refused('malformed_header', { headers: { ...headers, 'belfry-attempt': '0' } })
})

test('mistakes of the receiver itself are told as such', async () => {
  const { refused } = setup()
  await refused('malformed_secret', { secret: 'whsec_' })
  await refused('malformed_secret', { secret: 'not base64!' })
  await refused('malformed_secret', { secret: [] })
  await refused('malformed_secret', { secret: undefined as unknown as string })
  await refused('body_not_raw', { body: { to: 'ada@example.org' } as unknown as string })
})
