import { expect, test } from 'vitest'
import { oneNode } from './worker-calls.ts'

interface Worker {
  id: string
  status: string
  queues: string[]
  inFlight: number
  startedAt: string
  lastSeenAt: string
}

const start = oneNode()

async function setup() {
  const t = await start()
  const byWorker = t.as(t.key)
  const get = async (id: string) => (await t.read<Worker>(`GET /v1/workers/${id}`)).body
  const list = async (query = '') => {
    const { status, body } = await t.read<{ items: Worker[] }>(`GET /v1/workers${query}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.items.map(({ id }) => id)
  }
  return { ...t, byWorker, get, list, w1: t.worker('w1') }
}

test('a worker registers, is shown, changed and forgotten', async () => {
  const t = await setup()
  const fields = { queues: ['mails'], capacity: 20, version: '1.4', labels: { zone: 'a' } }
  const made = await t.byWorker<Worker>('PUT /v1/workers/w1', fields)
  expect(made).toMatchObject({ status: 200, body: { id: 'w1', status: 'active', ...fields, inFlight: 0 } })
  expect(await t.get('w1')).toEqual(made.body)
  const changed = await t.byWorker('PUT /v1/workers/w1', { capacity: 5 })
  expect(changed.body).toMatchObject({ ...fields, capacity: 5, startedAt: made.body.startedAt })
  expect(await t.list()).toEqual(['w1'])
  expect((await t.byWorker('DELETE /v1/workers/w1')).status).toBe(204)
  expect(await t.get('w1')).toMatchObject({ status: 404, code: 'not_found' })
  expect((await t.byWorker('DELETE /v1/workers/w1')).status).toBe(404)
})

test('a worker that only leases is known, with its queues and what it holds', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  await t.w1.heartbeat([{ token: run.token }])
  await expect.poll(async () => (await t.get('w1')).inFlight).toBe(1)
  expect(await t.get('w1')).toMatchObject({ status: 'active', queues: ['mails'] })
})

test('workers are listed by queue and status, a page at a time, without those of others', async () => {
  const t = await setup()
  const other = await t.tenant('other', ['admin'])
  await other.call('PUT /v1/workers/w9', { queues: ['mails'] })
  for (const [id, queue] of Object.entries({ w1: 'mails', w2: 'calls', w3: 'mails' }))
    await t.byWorker(`PUT /v1/workers/${id}`, { queues: [queue] })
  await t.byWorker('PUT /v1/workers/w3', { draining: true })
  expect(await t.list()).toEqual(['w1', 'w2', 'w3'])
  expect(await t.list('?queue=mails')).toEqual(['w1', 'w3'])
  expect(await t.list('?status=draining')).toEqual(['w3'])
  expect(await t.list('?status=lost')).toEqual([])
  const page = await t.read<{ nextCursor: string }>('GET /v1/workers?limit=2')
  expect(await t.list(`?limit=2&cursor=${page.body.nextCursor}`)).toEqual(['w3'])
  expect((await t.read('GET /v1/workers?status=activ')).body).toMatchObject({ status: 422 })
})

test('what cannot be the name or the description of a worker is refused', async () => {
  const t = await setup()
  for (const id of ['a%20b', '%C3%A4', 'x'.repeat(129)])
    expect((await t.byWorker(`PUT /v1/workers/${id}`, {})).status, id).toBe(422)
  for (const fields of [{ capacity: 0 }, { queues: ['a b'] }, { labels: { a: 1 } }, { drain: true }, { version: '' }])
    expect((await t.byWorker('PUT /v1/workers/w1', fields)).status, JSON.stringify(fields)).toBe(422)
  expect((await t.read('PUT /v1/workers/w1', {})).status).toBe(403)
})

test('a worker that shall drain is told with its next call and leased nothing more', async () => {
  const t = await setup()
  const run = await t.leased(t.w1)
  await t.byWorker('PUT /v1/workers/w1', { draining: true })
  await t.create({})
  expect(await t.w1.lease('mails')).toEqual({ runs: [], draining: true })
  const began = performance.now()
  expect(await t.w1.lease('mails', { waitMs: 20_000 })).toEqual({ runs: [], draining: true })
  expect(performance.now() - began).toBeLessThan(10_000)
  expect(await t.w1.heartbeat([{ token: run.token }])).toMatchObject({ leases: [{ outcome: 'ok' }], draining: true })
  expect(await t.w1.complete([{ token: run.token, status: 'succeeded' }])).toMatchObject([{ outcome: 'ok' }])
  expect((await t.worker('w2').lease('mails', { waitMs: 5_000 })).runs).toHaveLength(1)
  await t.byWorker('PUT /v1/workers/w1', { draining: false })
  await t.create({})
  expect((await t.w1.lease('mails', { waitMs: 10_000 })).runs).toHaveLength(1)
})

test('an operator who asks for a drain ends the poll that waits', async () => {
  const t = await setup()
  await t.byWorker('PUT /v1/workers/w1', { queues: ['mails'] })
  const waiting = t.w1.lease('mails', { waitMs: 30_000 })
  await t.read('GET /v1/whoami')
  const began = performance.now()
  await t.byWorker('PUT /v1/workers/w1', { draining: true })
  expect(await waiting).toEqual({ runs: [], draining: true })
  expect(performance.now() - began).toBeLessThan(10_000)
})

test('a queue says how many workers it wants', async () => {
  const t = await setup()
  const scale = (query = '') => t.read<Record<string, number>>(`GET /v1/queues/mails/scale${query}`)
  expect(await scale()).toMatchObject({ status: 404 })
  await t.read('PUT /v1/queues/mails', {})
  expect((await scale()).body).toEqual({
    ...{ queue: 'mails', workers: 0, slots: 0, backlog: 0, running: 0, serviceMs: null },
    ...{ arrivalsPerSecond: 0, targetLagMs: 10_000, perWorker: 10 },
  })
  const jobs = Array.from({ length: 100 }, () => ({ queue: 'mails', payload: 1 }))
  await t.read('POST /v1/jobs/batch', { jobs })
  const { body } = await scale('?targetLag=2s&perWorker=5')
  expect(body).toMatchObject({ backlog: 100, running: 0, targetLagMs: 2_000, perWorker: 5 })
  expect(body.workers).toBeGreaterThanOrEqual(10)
  expect(body.workers).toBeLessThanOrEqual(20)
  const { runs } = await t.w1.lease('mails', { max: 100, waitMs: 5_000 })
  await t.w1.complete(runs.slice(1).map(({ token }) => ({ token, status: 'succeeded', durationMs: 2 })))
  expect((await scale()).body).toMatchObject({ backlog: 100 - runs.length, running: 1, serviceMs: 2 })
  for (const query of ['?targetLag=0s', '?targetLag=soon', '?perWorker=0', '?lag=1s'])
    expect((await scale(query)).status, query).toBe(422)
})
