import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { scheduler } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { BelfryApiError, type BelfryClient } from '../src/index.ts'
import { startTestServer, type TestServer } from './server.ts'

/** By then whatever a worker held is to be had again, counted from the end of its lease. */
const RECOVERY_MS = 2_000
/** What a machine may add that runs other tests at the same time. What nobody recovers stays away for much longer. */
const SLACK_MS = 3_000
const LEASE_MS = 1_000
/** A worker that still renews so long after the timeout does not stop, and its lease is closed. */
const OVERTIME_MS = 11_000

let server: TestServer
let client: BelfryClient
let queues = 0
const newQueue = () => `recovery-${++queues}`

beforeAll(async () => {
  server = await startTestServer()
  client = server.client()
})
afterAll(() => server.stop())

const create = async (queue: string, count: number, more: object = {}) => {
  for (let left = count; left > 0; left -= 2_500) {
    const jobs = Array.from({ length: Math.min(left, 2_500) }, () => ({ queue, payload: 1, ...more }))
    await client.jobs.createMany(jobs)
  }
}

async function leaseOne(queue: string, workerId: string, leaseMs: number) {
  const { runs } = await client.leases.lease(queue, { workerId, leaseMs, waitMs: 15_000 })
  expect(runs).toHaveLength(1)
  return runs[0] as NonNullable<(typeof runs)[0]>
}

test('what a worker leases and never mentions again goes to the next one when the lease is over', async () => {
  const queue = newQueue()
  await create(queue, 1)
  const first = await leaseOne(queue, 'silent', LEASE_MS)
  const leasedAt = performance.now()
  const second = await leaseOne(queue, 'next', 60_000)
  const tookMs = performance.now() - leasedAt
  expect(second).toMatchObject({ runId: first.runId, attempt: 2, failures: 1 })
  expect(tookMs).toBeGreaterThan(LEASE_MS - 100)
  expect(tookMs).toBeLessThan(LEASE_MS + RECOVERY_MS + SLACK_MS)
  const late = { token: first.token, status: 'succeeded' as const }
  expect((await client.leases.complete({ workerId: 'silent', results: [late] })).results).toMatchObject([
    { outcome: 'lease_lost' },
  ])
  const own = { token: second.token, status: 'succeeded' as const }
  expect((await client.leases.complete({ workerId: 'next', results: [own] })).results).toMatchObject([
    { outcome: 'ok' },
  ])
  const { attempts, status } = await client.runs.get(first.runId)
  expect(status).toBe('succeeded')
  expect(attempts.map((one) => [one.number, one.status, one.failureClass])).toEqual([
    [1, 'failed', 'lease_expired'],
    [2, 'succeeded', null],
  ])
})

test('heartbeats for ever do not hold a run for longer than its timeout and the seconds in which a worker stops', async () => {
  const queue = newQueue()
  const timeoutMs = 2_500
  const retry = { maxAttempts: 2, backoff: { type: 'fixed', initial: '1ms', jitter: 0 } }
  await create(queue, 1, { timeout: `${timeoutMs}ms`, retry })
  const run = await leaseOne(queue, 'clinging', LEASE_MS)
  const leasedAt = performance.now()
  const next = leaseOne(queue, 'next', 60_000).then((second) => ({ second, tookMs: performance.now() - leasedAt }))
  const outcomes: string[] = []
  const untils: number[] = []
  while (outcomes.at(-1) !== 'lease_lost') {
    const [told] = (await client.leases.heartbeat({ workerId: 'clinging', leases: [{ token: run.token }] })).leases
    outcomes.push(told?.outcome ?? 'none')
    if (told?.leaseUntil) untils.push(Date.parse(told.leaseUntil))
    await scheduler.wait(100)
  }
  const { second, tookMs } = await next
  expect(second).toMatchObject({ runId: run.runId, attempt: 2, failures: 1 })
  expect(tookMs).toBeGreaterThan(timeoutMs - 100)
  expect(tookMs).toBeLessThan(timeoutMs + OVERTIME_MS + SLACK_MS)
  // Its lease alone would have ended long before.
  expect(outcomes.filter((outcome) => outcome === 'ok').length).toBeGreaterThan(5)
  expect(Math.max(...untils)).toBeLessThanOrEqual(Date.parse(run.deadline) + OVERTIME_MS)
  const { attempts } = await client.runs.get(run.runId)
  expect(attempts[0]).toMatchObject({ number: 1, status: 'failed', failureClass: 'timeout', counted: true })
})

/** A lease call as bytes, over a connection that can be cut at any moment. */
async function openPoll(queue: string, workerId: string, more: object = {}): Promise<Socket> {
  const body = JSON.stringify({ workerId, waitMs: 30_000, leaseMs: 600_000, ...more })
  const head = [
    `POST /v1/queues/${queue}/lease HTTP/1.1`,
    'Host: belfry',
    `Authorization: Bearer ${server.adminKey}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  return socket
}

const knownOf = async (prefix: string) => {
  const known = []
  for await (const worker of client.workers.list({ limit: 200 })) if (worker.id.startsWith(prefix)) known.push(worker)
  return known
}

test('five hundred polls whose clients vanish hold nothing and stand in nobody’s way', async () => {
  const queue = newQueue()
  const polls = await Promise.all(Array.from({ length: 500 }, (_, i) => openPoll(queue, `gone-${i}`, { max: 1_000 })))
  await expect.poll(async () => (await knownOf('gone-')).length, { interval: 50 }).toBe(500)
  await Promise.all(
    polls.map((socket) => {
      const closed = once(socket, 'close')
      socket.destroy()
      return closed
    }),
  )
  // Whatever was sent before this answer has arrived.
  await client.whoami()

  for (let i = 0; i < 20; i++) {
    const live = client.leases.lease(queue, { workerId: 'live', waitMs: 20_000, leaseMs: 600_000 })
    const createdAt = performance.now()
    await create(queue, 1)
    const { runs } = await live
    expect(performance.now() - createdAt).toBeLessThan(1_000 + SLACK_MS)
    // The first attempt: none of the others had it before.
    expect(runs).toMatchObject([{ attempt: 1, failures: 0 }])
    const results = runs.map(({ token }) => ({ token, status: 'succeeded' as const }))
    expect((await client.leases.complete({ workerId: 'live', results })).results).toMatchObject([{ outcome: 'ok' }])
  }
  for (const { inFlight } of await knownOf('gone-')) expect(inFlight).toBe(0)
})

test('what is being given to clients in the moment in which they vanish is given to others', async () => {
  const queue = newQueue()
  const count = 1_000
  // An answer that has left the server is only known to be lost when its lease is over.
  const polls = await Promise.all(
    Array.from({ length: 100 }, (_, i) => openPoll(queue, `vanishing-${i}`, { max: 10, leaseMs: LEASE_MS })),
  )
  const created = create(queue, count)
  for (const socket of polls) {
    socket.destroy()
    await scheduler.yield()
  }
  await created
  const since = performance.now()
  const seen = new Set<string>()
  while (seen.size < count) {
    const { runs } = await client.leases.lease(queue, {
      workerId: 'live',
      max: 1_000,
      waitMs: 10_000,
      leaseMs: 600_000,
    })
    for (const { runId, failures } of runs) {
      expect(seen.has(runId)).toBe(false)
      expect(failures).toBeLessThanOrEqual(1)
      seen.add(runId)
    }
  }
  expect(performance.now() - since).toBeLessThan(LEASE_MS + RECOVERY_MS + SLACK_MS)
})

test('a worker that has gone may be forgotten, and its leases still end', async () => {
  const queue = newQueue()
  await create(queue, 1)
  const run = await leaseOne(queue, 'forgotten', 3 * LEASE_MS)
  await expect.poll(async () => (await knownOf('forgotten')).length).toBe(1)
  await client.workers.delete('forgotten')
  const next = await leaseOne(queue, 'next', 60_000)
  expect(next).toMatchObject({ runId: run.runId, attempt: 2 })
  const gone = await client.workers.get('forgotten').catch((error: unknown) => error)
  expect(gone).toBeInstanceOf(BelfryApiError)
})
