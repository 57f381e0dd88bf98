import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BelfryApiError, type BelfryClient, base64Body, type Run } from '../src/index.ts'
import { startTestServer, type TestServer } from './server.ts'

let server: TestServer
let client: BelfryClient

beforeAll(async () => {
  server = await startTestServer()
  client = server.client()
})
afterAll(() => server.stop())

/** A queue that nobody serves: what waits in it stays as it is. */
const STILL = 'still'

async function refusal(call: PromiseLike<unknown>): Promise<BelfryApiError> {
  const error = await call.then(
    () => null,
    (one: unknown) => one,
  )
  if (!(error instanceof BelfryApiError)) throw new Error(`expected a refusal, not ${error}`)
  return error
}

/** Creates a job that runs now, and waits for the end of its run. */
async function performed(queue: string, more: object = {}): Promise<Run> {
  const { jobId } = await client.jobs.create({ queue, payload: 1, retry: { maxAttempts: 1 }, ...more })
  const [run] = (await client.jobs.runs(jobId)).items
  return client.runs.get(run?.id ?? '', { waitMs: 10_000 })
}

test('a job is created, read, changed, paused, resumed, triggered, canceled, and its changes are kept', async () => {
  const runAt = new Date('2090-01-01T09:00:00Z')
  const created = await client.jobs.create({ name: 'later', queue: STILL, runAt, labels: { team: 'a' } })
  expect(created).toMatchObject({ status: 'active', nextRunAt: '2090-01-01T09:00:00.000Z' })
  const { jobId } = created
  expect(await client.jobs.get(jobId)).toMatchObject({ jobId, name: 'later', labels: { team: 'a' }, version: 1 })

  expect(await client.jobs.update(jobId, { runAt: '2091-01-01T00:00:00Z', labels: null })).toEqual({ version: 2 })
  expect(await client.jobs.get(jobId)).toMatchObject({ labels: {}, nextRunAt: '2091-01-01T00:00:00.000Z' })
  expect(await refusal(client.jobs.update(jobId, { priority: 1 }, { ifVersion: 1 }))).toMatchObject({
    code: 'version_mismatch',
    status: 412,
  })
  expect(await client.jobs.pause(jobId, { reason: 'not yet' })).toEqual({ status: 'paused' })
  expect(await client.jobs.resume(jobId)).toEqual({ status: 'active' })
  expect(await client.jobs.cancel(jobId)).toEqual({ status: 'canceled' })
  const actions = (await client.jobs.changes(jobId)).items.map((change) => change.action)
  expect(actions).toEqual(expect.arrayContaining(['create', 'update', 'pause', 'resume', 'cancel']))
})

test('a job is put by its name, triggered, and deleted', async () => {
  const job = { cron: '0 9 * * *', queue: STILL, overlap: 'allow' as const }
  const put = await client.jobs.putByName('daily', job)
  expect(put).toMatchObject({ created: true, version: 1 })
  expect(await client.jobs.putByName('daily', job)).toMatchObject({ created: false, jobId: put.jobId })
  const { runId } = await client.jobs.trigger(put.jobId, { payload: { by: 'hand' } })
  expect(await client.runs.get(runId)).toMatchObject({ jobId: put.jobId, cause: 'trigger', payload: { by: 'hand' } })
  expect(await client.jobs.delete(put.jobId)).toBeUndefined()
  expect(await refusal(client.jobs.delete(put.jobId))).toMatchObject({ code: 'not_found' })
})

test('many jobs are created at once, found again over several pages, and acted on together', async () => {
  const labels = { lot: 'many' }
  const jobs = Array.from({ length: 25 }, (_, i) => ({ ref: `n${i}`, queue: STILL, delay: '1d', labels }))
  const made = await client.jobs.createMany(jobs)
  expect(made.map((job) => job.ref)).toEqual(jobs.map((job) => job.ref))

  const first = await client.jobs.list({ label: 'lot=many', limit: 10 })
  expect(first.items).toHaveLength(10)
  expect(first.nextCursor).toEqual(expect.any(String))
  const found = new Set<string>()
  for await (const job of client.jobs.list({ label: 'lot=many', limit: 10 })) found.add(job.jobId)
  expect(found).toEqual(new Set(made.map((job) => job.jobId)))

  const done = await client.jobs.actions({ filter: { label: 'lot=many' }, action: 'cancel' })
  expect(done).toMatchObject({ count: 25, refused: [], nextCursor: null })
})

test('a run is listed, its logs are read, and one that waits is canceled', async () => {
  server.belfry.handle('logging', async (run) => {
    run.log('half way')
    return { sent: 1 }
  })
  const run = await performed('logging')
  expect(run).toMatchObject({ status: 'succeeded', result: { sent: 1 }, attempt: 1 })
  expect(await client.runs.list({ job: run.jobId, status: 'succeeded', from: new Date(0) })).toMatchObject({
    items: [{ id: run.id }],
  })
  await expect.poll(async () => (await client.runs.logs(run.id)).items).toMatchObject([{ message: 'half way' }])

  const { jobId } = await client.jobs.create({ queue: STILL, payload: 1 })
  const waiting = (await client.jobs.runs(jobId)).items[0]?.id ?? ''
  expect(await client.runs.cancel(waiting)).toEqual({ status: 'canceled' })
})

test('a dead letter is listed, read, redriven, retried and dropped', async () => {
  server.belfry.handle('failing', () => Promise.reject(new Error('always')))
  const { id } = await performed('failing')
  const isDead = () => client.deadLetters.get(id).then((letter) => letter.failureClass)
  expect(await isDead()).toBe('handler_error')
  expect((await client.deadLetters.list({ queue: 'failing' })).items).toMatchObject([{ runId: id }])
  expect(await client.deadLetters.redrive({ filter: { queue: 'failing' } })).toEqual({ count: 1, runIds: [id] })
  await expect.poll(() => client.runs.get(id)).toMatchObject({ status: 'failed', attempt: 2 })
  expect(await client.runs.retry(id)).toEqual({ runId: id })
  await expect.poll(() => client.runs.get(id)).toMatchObject({ status: 'failed', attempt: 3 })
  await client.deadLetters.delete(id)
  expect(await refusal(client.deadLetters.get(id))).toMatchObject({ code: 'not_found' })
})

test('a queue is made, paused, resumed, purged, measured and dropped', async () => {
  expect(await client.queues.put('mails', { kind: 'worker' })).toMatchObject({ name: 'mails', kind: 'worker' })
  expect(await client.queues.pause('mails', { reason: 'moving' })).toMatchObject({
    paused: true,
    pauseReason: 'moving',
  })
  await client.jobs.create({ queue: 'mails', payload: 1 })
  expect(await client.queues.scale('mails', { targetLag: 'PT5S', perWorker: 5 })).toMatchObject({
    queue: 'mails',
    backlog: 1,
    perWorker: 5,
    targetLagMs: 5_000,
  })
  expect(await client.queues.resume('mails')).toMatchObject({ paused: false })
  expect(await client.queues.purge('mails')).toEqual({ purged: 1 })
  const names: string[] = []
  for await (const queue of client.queues.list({ limit: 1 })) names.push(queue.name)
  expect(names).toContain('mails')
  expect(await client.queues.get('mails')).toMatchObject({ name: 'mails' })
  expect(await client.queues.delete('mails')).toBeUndefined()
})

test('payloads of any kind come back byte by byte, with their type', async () => {
  const bytes = Uint8Array.from({ length: 1_000 }, (_, i) => i % 256)
  const kinds: [data: string | Uint8Array | ArrayBuffer | Blob, type: string, expected: Uint8Array][] = [
    [bytes, 'application/octet-stream', bytes],
    [bytes.buffer, 'application/octet-stream', bytes],
    ['Grüße', 'text/plain; charset=utf-8', new TextEncoder().encode('Grüße')],
    [new Blob([bytes], { type: 'image/png' }), 'image/png', bytes],
  ]
  for (const [data, type, expected] of kinds) {
    const { payloadRef, size } = await client.payloads.put(data)
    expect(size).toBe(expected.length)
    const got = await client.payloads.get(payloadRef)
    expect(got.contentType).toBe(type)
    expect(Buffer.from(got.bytes).equals(expected)).toBe(true)
    expect(await client.payloads.delete(payloadRef)).toBeUndefined()
  }
  const json = await client.payloads.put('{"a":1}', { contentType: 'application/json' })
  expect(await client.payloads.get(json.payloadRef)).toMatchObject({ contentType: 'application/json' })
})

test('bytes reach an HTTP target as they are', async () => {
  const bodies: Buffer[] = []
  const target = createServer(async (request, response) => {
    for await (const part of request) bodies.push(part)
    response.end()
  })
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
  const bytes = new Uint8Array([0, 255, 128, 10])
  const url = `http://127.0.0.1:${(target.address() as AddressInfo).port}/`
  const { jobId } = await client.jobs.create({ http: { url, body: base64Body(bytes) } })
  const [run] = (await client.jobs.runs(jobId)).items
  expect(await client.runs.get(run?.id ?? '', { waitMs: 10_000 })).toMatchObject({ status: 'succeeded' })
  target.close()
  expect(Buffer.concat(bodies).equals(bytes)).toBe(true)
})

test('a worker made of plain calls leases, heartbeats, completes and releases', async () => {
  const worker = { workerId: 'w1' }
  await client.workers.put('w1', { queues: ['pulled'], capacity: 2, version: '1.0', labels: { zone: 'a' } })
  for (const payload of ['a', 'b']) await client.jobs.create({ queue: 'pulled', payload })
  const { runs } = await client.leases.lease('pulled', { ...worker, max: 2, waitMs: 10_000 })
  const more = runs.length === 2 ? [] : (await client.leases.lease('pulled', { ...worker, waitMs: 10_000 })).runs
  const [first, second] = [...runs, ...more]
  if (!first || !second) throw new Error('two jobs were created, and not two leased')

  const progress = { value: 0.5, text: 'half' }
  const logs = [{ line: 1, message: 'hello', at: new Date() }]
  const beat = await client.leases.heartbeat({ ...worker, leases: [{ token: first.token, progress, logs }] })
  expect(beat.leases).toMatchObject([{ token: first.token, outcome: 'ok' }])
  expect(await client.workers.get('w1')).toMatchObject({ id: 'w1', status: 'active', version: '1.0' })
  expect((await client.workers.list({ queue: 'pulled' })).items).toMatchObject([{ id: 'w1' }])

  const results = [{ token: first.token, status: 'succeeded' as const, result: 42 }]
  expect(await client.leases.complete({ ...worker, results })).toMatchObject({ results: [{ outcome: 'ok' }] })
  expect(await client.leases.complete({ ...worker, results })).toMatchObject({ results: [{ outcome: 'ok' }] })
  expect(await client.leases.release({ ...worker, leases: [{ token: second.token }] })).toMatchObject({
    leases: [{ outcome: 'ok' }],
  })
  expect(await client.runs.get(first.runId)).toMatchObject({ status: 'succeeded', result: 42 })
  expect(await client.runs.get(second.runId)).toMatchObject({ failures: 0 })
  expect(await client.workers.delete('w1')).toBeUndefined()
})

test('secrets are written and never read back', async () => {
  expect(await client.secrets.put('token', 'hush')).toEqual({ name: 'token' })
  expect(await client.secrets.get('token')).toEqual({ name: 'token', updatedAt: expect.any(String) })
  expect((await client.secrets.list()).items.map((secret) => secret.name)).toEqual(['token'])
  expect(await client.secrets.delete('token')).toBeUndefined()
})

test('signing keys are rotated, nodes and circuits are seen', async () => {
  const before = (await client.signingKeys.list()).items.length
  expect((await client.signingKeys.rotate({ overlap: '1h' })).items.length).toBe(before + 1)
  expect((await client.nodes.list()).items).toHaveLength(1)
  expect((await client.circuits.list()).items).toEqual([])
  expect(await refusal(client.circuits.reset('https://a.example:443'))).toMatchObject({ code: 'not_found' })
})

test('a tenant is made, given a key, and sees nothing of another', async () => {
  const tenant = await client.tenants.create({ name: 'acme' })
  expect(await client.tenants.update(tenant.id, { weight: 2 })).toMatchObject({ weight: 2 })
  expect(await client.tenants.get(tenant.id)).toMatchObject({ name: 'acme' })
  const names: string[] = []
  for await (const { name } of client.tenants.list({ limit: 1 })) names.push(name)
  expect(names.sort()).toEqual(['acme', 'default'])

  const made = await client.apiKeys.create({ tenantId: tenant.id, name: 'app', scopes: ['read', 'write'] })
  const acme = server.client({ key: made.key })
  expect(await acme.whoami()).toMatchObject({ tenant: 'acme', scopes: ['read', 'write'], installation: false })
  expect((await acme.jobs.list()).items).toEqual([])
  expect(await server.client({ tenant: 'acme' }).whoami()).toMatchObject({ tenant: 'acme', installation: true })
  expect(await acme.stats()).toMatchObject({ runs: { ready: 0 } })
  expect(await refusal(acme.stats({ of: 'installation' }))).toMatchObject({ code: 'forbidden', status: 403 })

  const fresh = await client.apiKeys.rotate(made.id, { overlap: '1h' })
  expect((await client.apiKeys.list({ tenantId: tenant.id })).items).toHaveLength(2)
  expect(await client.apiKeys.get(fresh.id)).toMatchObject({ name: 'app' })
  for (const id of [made.id, fresh.id]) await client.apiKeys.delete(id)
  expect(await refusal(acme.whoami())).toMatchObject({ code: 'unauthorized', status: 401 })
  expect(await client.tenants.delete(tenant.id)).toBeUndefined()
})

test('a refusal says which field is wrong, and what was probably meant', async () => {
  const error = await refusal(client.jobs.create({ queue: STILL, dealy: '1m' } as object))
  expect(error).toMatchObject({ code: 'invalid_job', status: 422, title: expect.any(String) })
  expect(error.errors).toMatchObject([{ path: 'dealy', suggestion: 'delay' }])
  expect(error.requestId).toMatch(/^[\w-]+$/)
  await client.jobs.create({ name: 'one', queue: STILL, delay: '1d' })
  const taken = await refusal(client.jobs.create({ name: 'one', queue: STILL, delay: '1d' }))
  expect(BelfryApiError.is(taken, 'name_taken')).toBe(true)
})
