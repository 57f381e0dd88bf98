import { expect, onTestFinished, test } from 'vitest'
import { BelfryClient } from '../src/index.ts'
import { createRun, finished, signal, startWorker, startWorkerServer } from './worker-kit.ts'

async function setup() {
  const server = await startWorkerServer()
  onTestFinished(() => server.stop())
  return server
}

test('a worker that ended while the server was away says so when it is back, and says once that it was', async () => {
  const own = await setup()
  const { client } = own
  const begun = signal()
  const goOn = signal()
  const { logger, worker } = startWorker(client, 'away', {
    concurrency: 5,
    handler: async (run) => {
      if (run.payload === 4) begun.resolve()
      await goOn.promise
      return run.payload
    },
  })
  const ids: string[] = []
  for (let i = 0; i < 5; i++) ids.push(await createRun(client, { queue: 'away', payload: i }))
  await begun.promise
  await own.stop()
  goOn.resolve()
  await expect.poll(() => logger.lines.map(({ level }) => level)).toContain('warn')
  await own.restart()
  const runs = await Promise.all(ids.map((id) => finished(client, id)))
  expect(runs.map(({ status, attempt, result }) => [status, attempt, result])).toEqual(
    ids.map((_, i) => ['succeeded', 1, i]),
  )
  expect(await finished(client, await createRun(client, { queue: 'away', payload: 'after' }))).toMatchObject({
    result: 'after',
  })
  await worker.stop()
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'the connection to Belfry was lost',
    'the connection to Belfry is back',
  ])
})

test('a worker whose heartbeats do not get through is told so at the end, and the other attempt stands', async () => {
  const { url, adminKey, client } = await setup()
  const queue = 'deaf'
  const begun = signal()
  const goOn = signal()
  const lost = signal<number>()
  const deaf = new BelfryClient({
    ...{ url, key: adminKey },
    fetch: (address, request) =>
      address.endsWith('/heartbeat') ? Promise.reject(new Error('dropped')) : fetch(address, request),
  })
  startWorker(deaf, queue, {
    leaseMs: 1_000,
    concurrency: 1,
    prefetch: 0,
    handler: async () => {
      begun.resolve()
      await goOn.promise
      return 'stale'
    },
    onLeaseLost: (run) => lost.resolve(run.attempt),
  })
  const id = await createRun(client, { queue, payload: 1, retry: { maxAttempts: 3 } })
  await begun.promise
  startWorker(client, queue, { handler: () => 'fresh' })
  expect(await finished(client, id)).toMatchObject({ status: 'succeeded', attempt: 2, result: 'fresh' })
  goOn.resolve()
  expect(await lost.promise).toBe(1)
  expect(await client.runs.get(id)).toMatchObject({ status: 'succeeded', attempt: 2, result: 'fresh' })
})

test('while the server is away no more is held than there is room for, and all of it ends when it is back', async () => {
  const own = await setup()
  const { client } = own
  let handled = 0
  const begun = signal()
  const goOn = signal()
  startWorker(client, 'many', {
    concurrency: 10,
    prefetch: 40,
    handler: async () => {
      begun.resolve()
      await goOn.promise
      handled++
    },
  })
  await client.jobs.createMany(Array.from({ length: 500 }, (_, i) => ({ queue: 'many', payload: i })))
  await begun.promise
  await own.stop()
  goOn.resolve()
  await expect.poll(() => handled).toBeGreaterThanOrEqual(10)
  // As many turns as it likes: without a server there is nothing to get.
  for (let i = 0; i < 1_000; i++) await new Promise((resolve) => setImmediate(resolve))
  expect(handled).toBeLessThanOrEqual(50)
  await own.restart()
  const succeeded = () => client.runs.list({ queue: 'many', status: 'succeeded', limit: 500 })
  await expect.poll(async () => (await succeeded()).items.length).toBe(500)
  expect(handled).toBe(500)
})
