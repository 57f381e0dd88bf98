import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type BelfryClient, BelfryConnectionError } from '../src/index.ts'
import { startLossyProxy } from './lossy-proxy.ts'
import { startTestServer, type TestServer } from './server.ts'

let server: TestServer

beforeAll(async () => {
  server = await startTestServer()
})
afterAll(() => server.stop())

/** A client whose first answer to each such request is lost after the server has done it. */
async function losing(first: RegExp): Promise<{ client: BelfryClient; dropped: () => number }> {
  let isLost = false
  const proxy = await startLossyProxy(server.port, (request) => {
    if (isLost || !first.test(request)) return false
    isLost = true
    return true
  })
  onTestFinished(() => proxy.stop())
  return { client: server.client({ url: proxy.url }), dropped: () => proxy.dropped }
}

const countOf = async (label: string): Promise<number> => (await server.client().jobs.list({ label })).items.length

test('a create whose answer was lost makes one job', async () => {
  const { client, dropped } = await losing(/^POST \/v1\/jobs /)
  const { jobId } = await client.jobs.create({ queue: 'still', delay: '1d', labels: { lot: 'one' } })
  expect(dropped()).toBe(1)
  expect(await server.client().jobs.get(jobId)).toMatchObject({ labels: { lot: 'one' } })
  expect(await countOf('lot=one')).toBe(1)
})

test('many creates whose answer was lost make each job once', async () => {
  const { client, dropped } = await losing(/^POST \/v1\/jobs\/batch /)
  const job = { queue: 'still', delay: '1d', labels: { lot: 'many' } }
  const made = await client.jobs.createMany(Array.from({ length: 20 }, () => job))
  expect(dropped()).toBe(1)
  expect(new Set(made.map((one) => one.jobId)).size).toBe(20)
  expect(await countOf('lot=many')).toBe(20)
})

test('a job that was deleted while its answer was lost is deleted', async () => {
  const { jobId } = await server.client().jobs.create({ queue: 'still', delay: '1d' })
  const { client, dropped } = await losing(/^DELETE /)
  expect(await client.jobs.delete(jobId)).toBeUndefined()
  expect(dropped()).toBe(1)
})

test('a trigger whose answer was lost is not repeated: the caller decides', async () => {
  const { jobId } = await server.client().jobs.create({ queue: 'still', cron: '0 0 1 1 *', overlap: 'allow' })
  const { client } = await losing(/trigger /)
  await expect(client.jobs.trigger(jobId)).rejects.toMatchObject({ name: 'BelfryConnectionError', wasSent: true })
  expect((await server.client().jobs.runs(jobId)).items).toHaveLength(1)
})

test('a lease whose answer was lost is the same lease when it is asked for again', async () => {
  await server.client().jobs.create({ queue: 'pulled', payload: 1 })
  const { client, dropped } = await losing(/\/lease /)
  const { runs } = await client.leases.lease('pulled', { workerId: 'w1', waitMs: 10_000 })
  expect(runs).toMatchObject([{ attempt: 1, failures: 0 }])
  const results = runs.map(({ token }) => ({ token, status: 'succeeded' as const }))
  expect((await client.leases.complete({ workerId: 'w1', results })).results).toMatchObject([{ outcome: 'ok' }])
  expect(dropped()).toBe(1)
})

test('a completion whose answer was lost is ok when it is said again', async () => {
  await server.client().jobs.create({ queue: 'pulled', payload: 1 })
  const { client, dropped } = await losing(/\/complete /)
  const { runs } = await client.leases.lease('pulled', { workerId: 'w2', waitMs: 10_000 })
  const results = runs.map(({ token }) => ({ token, status: 'succeeded' as const }))
  expect((await client.leases.complete({ workerId: 'w2', results })).results).toMatchObject([{ outcome: 'ok' }])
  expect(dropped()).toBe(1)
})

test('a server that is not there is a connection error, and nothing was sent', async () => {
  const proxy = await startLossyProxy(server.port, () => false)
  await proxy.stop()
  const error = await server
    .client({ url: proxy.url, retries: 1 })
    .whoami()
    .catch((one: unknown) => one)
  expect(error).toBeInstanceOf(BelfryConnectionError)
  expect(error).toMatchObject({ wasSent: false, isTimeout: false })
})

test('a call that goes over the rate of its tenant waits as the server asks, and goes through', async () => {
  const admin = server.client()
  const tenant = await admin.tenants.create({ name: 'slow', quotas: { requestsPerSecond: 1 } })
  const { key } = await admin.apiKeys.create({ tenantId: tenant.id, name: 'k', scopes: ['read'] })
  const waited: (string | null)[] = []
  const client = server.client({
    key,
    fetch: async (url, request) => {
      const answer = await fetch(url, request)
      if (answer.status === 429) waited.push(answer.headers.get('retry-after'))
      return answer
    },
  })
  for (const _ of [1, 2]) expect(await client.whoami()).toMatchObject({ tenant: 'slow' })
  expect(waited[0]).toBe('1')
  const error = await client.jobs
    .list({}, { retries: 0 })
    .then(() => client.jobs.list({}, { retries: 0 }))
    .then(
      () => null,
      (one: unknown) => one,
    )
  expect(error).toMatchObject({ code: 'rate_limited', status: 429, retryAfterMs: 1_000 })
})

test('a long poll ends at once when it is aborted', async () => {
  const leaving = new AbortController()
  const client = server.client({
    fetch: (url, request) => {
      queueMicrotask(() => leaving.abort(new Error('leaving')))
      return fetch(url, request)
    },
  })
  const poll = client.leases.lease('nobody', { workerId: 'w3', waitMs: 30_000 }, { signal: leaving.signal })
  await expect(poll).rejects.toThrow('leaving')
})
