import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  aborted,
  createRun,
  finished,
  signal,
  startWorker,
  startWorkerServer,
  type WorkerServer,
} from './worker-kit.ts'

let server: WorkerServer
let queues = 0
const newQueue = () => `queue-${++queues}`

beforeAll(async () => {
  server = await startWorkerServer()
})
afterAll(() => server.stop())

test('a draining worker finishes what it can and gives back the rest, uncounted', async () => {
  const { client } = server
  const queue = newQueue()
  const stuck: unknown[] = []
  const finish = signal()
  const begun = signal()
  let active = 0
  const { worker } = startWorker(client, queue, {
    concurrency: 100,
    graceMs: 1_500,
    handler: async (run) => {
      if (++active === 100) begun.resolve()
      if (Number(run.payload) < 20) stuck.push(await aborted(run))
      else await finish.promise
    },
  })
  await client.jobs.createMany(Array.from({ length: 100 }, (_, i) => ({ queue, payload: i })))
  await begun.promise
  const stopped = worker.stop()
  finish.resolve()
  await stopped
  const { items } = await client.runs.list({ queue, limit: 500 })
  const ended = items.filter(({ status }) => status === 'succeeded')
  const again = items.filter(({ status }) => status === 'ready')
  expect([ended.length, again.length]).toEqual([80, 20])
  expect(again.every(({ failures }) => failures === 0)).toBe(true)
  expect(stuck).toEqual(Array.from({ length: 20 }, () => 'stopping'))
  await expect(client.workers.get(worker.id)).rejects.toMatchObject({ status: 404 })
})

test('work that may be done at most once and does not end in time is lost, not repeated', async () => {
  const { client } = server
  const queue = newQueue()
  const begun = signal()
  const { worker } = startWorker(client, queue, {
    graceMs: 0,
    handler: async (run) => {
      begun.resolve()
      await aborted(run)
    },
  })
  const id = await createRun(client, { queue, payload: 1, delivery: 'at_most_once' })
  await begun.promise
  await worker.stop()
  expect(await finished(client, id)).toMatchObject({ status: 'lost', failureClass: 'lost', attempt: 1 })
})

test('leases that come while the worker stops go back at once', async () => {
  const { client } = server
  const queue = newQueue()
  let handled = 0
  const { worker } = startWorker(client, queue, { leaseMs: 60_000, handler: () => void handled++ })
  await expect.poll(async () => (await client.workers.get(worker.id)).status).toBe('active')
  const [created] = await Promise.all([
    client.jobs.createMany(Array.from({ length: 10 }, (_, i) => ({ queue, payload: i }))),
    worker.stop(),
  ])
  expect(created).toHaveLength(10)
  const { items } = await client.runs.list({ queue })
  const ready = items.filter(({ status }) => status === 'ready').length
  expect(ready + handled).toBe(10)
})

test('a worker is known by what it serves, and an operator can have it drained', async () => {
  const { client } = server
  const queue = newQueue()
  const options = { concurrency: 7, version: '1.2.3', labels: { zone: 'b' } }
  const { worker, logger } = startWorker(client, queue, { ...options, handler: () => {} })
  await expect
    .poll(() => client.workers.get(worker.id))
    .toMatchObject({ status: 'active', queues: [queue], capacity: 7, version: '1.2.3', labels: { zone: 'b' } })
  await client.workers.put(worker.id, { draining: true })
  await expect.poll(() => logger.lines.map(({ message }) => message)).toContain('Belfry asks the worker to drain')
  await worker.stop()
  await expect(client.workers.get(worker.id)).rejects.toMatchObject({ status: 404 })
})
