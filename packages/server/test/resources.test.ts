import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { oneNodeForAll } from './api.ts'

const setup = oneNodeForAll()

test('a paused queue keeps its runs until it is resumed, and says why', async () => {
  const t = await setup()
  expect((await t.call('PUT /v1/queues/mail', {})).body).toMatchObject({ name: 'mail', paused: false })
  const paused = await t.call('POST /v1/queues/mail/pause', { reason: 'the server moves' })
  expect(paused.body).toMatchObject({ name: 'mail', paused: true, pauseReason: 'the server moves' })
  const ran: string[] = []
  t.handle('mail', (run) => void ran.push(run.jobId))
  t.handle('other', () => null)
  const mail = await t.call<{ jobId: string }>('POST /v1/jobs', { queue: 'mail', payload: 1 })
  const other = await t.call<{ jobId: string }>('POST /v1/jobs', { queue: 'other', payload: 1 })
  const statusOf = async (jobId: string) => (await t.call<{ status: string }>(`GET /v1/jobs/${jobId}`)).body.status
  await expect.poll(() => statusOf(other.body.jobId)).toBe('succeeded')
  expect(ran).toEqual([])
  expect((await t.call('POST /v1/queues/mail/resume')).body).toMatchObject({ paused: false, pauseReason: null })
  await expect.poll(() => ran).toEqual([mail.body.jobId])
})

test('a queue is dropped only when it is empty, and can be emptied', async () => {
  const t = await setup()
  for (let i = 0; i < 3; i++) await t.call('POST /v1/jobs', { queue: 'full', payload: i })
  expect((await t.call('DELETE /v1/queues/full')).body).toMatchObject({ status: 409, code: 'not_empty' })
  expect((await t.call('POST /v1/queues/full/purge')).body).toEqual({ purged: 3 })
  expect((await t.call('DELETE /v1/queues/full')).status).toBe(204)
  expect((await t.call('GET /v1/queues/full')).body).toMatchObject({ status: 404, code: 'not_found' })
  const names = (await t.call<{ items: { name: string }[] }>('GET /v1/queues')).body.items.map(({ name }) => name)
  expect(names).not.toContain('full')
})

test('a queue for workers takes no HTTP jobs', async () => {
  const t = await setup()
  expect((await t.call('PUT /v1/queues/hands', { kind: 'worker' })).body).toMatchObject({ kind: 'worker' })
  expect((await t.call('PUT /v1/queues/hands', { kind: 'http' })).body).toMatchObject({
    status: 409,
    code: 'queue_kind',
  })
  const job = { queue: 'hands', http: { url: 'https://example.com/' }, delay: '1h' }
  expect((await t.call('POST /v1/jobs', job)).body).toMatchObject({ status: 409, code: 'queue_kind' })
})

test('a payload comes back byte for byte with its content type, and is unreadable in the database', async () => {
  const t = await setup()
  const bytes = Buffer.concat([Buffer.from('plain words'), randomBytes(5_000)])
  const put = await t.call<{ payloadRef: string; size: number; expiresAt: string }>('PUT /v1/payloads', bytes, {
    'content-type': 'image/x-odd; a=b',
  })
  expect(put).toMatchObject({ status: 201, body: { size: bytes.length } })
  expect(Date.parse(put.body.expiresAt)).toBeGreaterThan(Date.now() + 29 * 86_400_000)
  const got = await fetch(`${t.url}/v1/payloads/${put.body.payloadRef}`, {
    headers: { authorization: `Bearer ${t.adminKey}`, ...t.headers },
  })
  expect(got.headers.get('content-type')).toBe('image/x-odd; a=b')
  expect(got.headers.get('content-disposition')).toBe('attachment')
  expect(Buffer.from(await got.arrayBuffer()).equals(bytes)).toBe(true)
  const [row] = await t.query<{ sealed: Buffer }>('select sealed from payloads where tenant_id = $1', [t.tenantId])
  expect(row?.sealed.includes('plain words')).toBe(false)

  t.handle('reads', (run) => run.payload)
  expect((await t.call(`DELETE /v1/payloads/${put.body.payloadRef}`)).status).toBe(204)
  expect((await t.call(`GET /v1/payloads/${put.body.payloadRef}`)).body).toMatchObject({ code: 'not_found' })
})

test('a payload has up to 10 MiB and at least one byte', async () => {
  const t = await setup()
  const put = (body: Buffer) => t.call('PUT /v1/payloads', body, { 'content-type': 'application/octet-stream' })
  expect((await put(Buffer.alloc(10_485_760))).status).toBe(201)
  expect((await put(Buffer.alloc(10_485_761))).body).toMatchObject({ status: 413 })
  expect((await t.call('PUT /v1/payloads')).body).toMatchObject({ status: 422, code: 'invalid_request' })
})

test('a secret is written and never read back', async () => {
  const t = await setup()
  expect((await t.call('PUT /v1/secrets/token', { value: 'hush-hush' })).body).toEqual({ name: 'token' })
  for (const line of ['GET /v1/secrets', 'GET /v1/secrets/token']) {
    const { status, body } = await t.call(line)
    expect(status).toBe(200)
    expect(JSON.stringify(body)).toContain('token')
    expect(JSON.stringify(body)).not.toContain('hush')
  }
  const [row] = await t.query<{ sealed: Buffer }>('select sealed from secrets where tenant_id = $1', [t.tenantId])
  expect(row?.sealed.includes('hush')).toBe(false)
  expect((await t.call('DELETE /v1/secrets/token')).status).toBe(204)
  expect((await t.call('DELETE /v1/secrets/token')).body).toMatchObject({ status: 404 })
  expect((await t.call('PUT /v1/secrets/token', { values: 'x' })).body).toMatchObject({
    code: 'invalid_request',
    errors: expect.arrayContaining([expect.objectContaining({ suggestion: 'value' })]),
  })
})

test('after a rotation requests are signed with the new key and, for a while, the old one', async () => {
  const t = await setup()
  type Keys = { items: { id: string; secret: string; expiresAt: string | null }[] }
  const before = (await t.call<Keys>('GET /v1/signing-keys')).body.items
  expect(before).toHaveLength(1)
  expect(before[0]?.secret).toMatch(/^whsec_/)
  const { status, body } = await t.call<Keys>('POST /v1/signing-keys/rotate', { overlap: '2h' })
  expect(status).toBe(200)
  expect(body.items).toHaveLength(2)
  const old = body.items.find(({ id }) => id === before[0]?.id)
  expect(Date.parse(old?.expiresAt ?? '') - Date.now()).toBeLessThan(2 * 3_600_000 + 60_000)
  const refused = await t.call('POST /v1/signing-keys/rotate', { overlap: 'soon' })
  expect(refused.body).toMatchObject({ status: 422, code: 'invalid_request', errors: [{ path: 'overlap' }] })
})

test('a circuit is listed, and closed by hand', async () => {
  const t = await setup()
  const origin = 'https://broken.example:8443'
  await t.query(
    `insert into circuits (opened_at, probe_at, tenant_id, open_ms, failures, origin, reason)
     values (now(), now() + interval '1 hour', $2, 10000, 20, $1, 'http_5xx')`,
    [origin, t.tenantId],
  )
  const { body } = await t.call<{ items: object[] }>('GET /v1/circuits')
  expect(body.items).toMatchObject([{ origin, state: 'open' }])
  const line = `POST /v1/circuits/${encodeURIComponent(origin)}/reset`
  expect((await t.call(line)).body).toEqual({ origin })
  expect((await t.call<{ items: object[] }>('GET /v1/circuits')).body.items).toEqual([])
  expect((await t.call(line)).body).toMatchObject({ status: 404, code: 'not_found' })
})

test('the nodes that are there are listed with what they do', async () => {
  const t = await setup()
  const nodes = async () => (await t.call<{ items: { roles: string[] }[] }>('GET /v1/nodes')).body.items
  await expect.poll(nodes).toMatchObject([{ roles: ['api', 'promoter', 'dispatcher', 'archivist'] }])
})
