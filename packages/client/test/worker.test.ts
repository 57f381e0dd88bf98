import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Run } from '../src/worker/index.ts'
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

test('a handler gets the run with all that it was created with, and its result is kept', async () => {
  const { client } = server
  const queue = newQueue()
  const seen = signal<Record<string, unknown>>()
  startWorker(client, queue, {
    handler: (run) => {
      const { id, jobId, attempt, failures, payload, payloadRef, labels } = run
      const dates = [run.nominalAt, run.deadline].every((date) => date instanceof Date && date.getTime() > 0)
      seen.resolve({ id, jobId, attempt, failures, payload, payloadRef, labels, dates })
      return { done: [1, 2] }
    },
  })
  const id = await createRun(client, { queue, payload: { to: 'ada' }, labels: { team: 'a' } })
  const run = await finished(client, id)
  expect(await seen.promise).toEqual({
    ...{ id, jobId: id.split('.')[0], attempt: 1, failures: 0 },
    ...{ payload: { to: 'ada' }, payloadRef: undefined, labels: { team: 'a' }, dates: true },
  })
  expect(run).toMatchObject({ status: 'succeeded', attempt: 1, result: { done: [1, 2] } })
})

test('a cancel reaches the handler while its worker waits for more', async () => {
  const { client } = server
  const queue = newQueue()
  const started = signal()
  const reason = signal<unknown>()
  startWorker(client, queue, {
    handler: async (run) => {
      started.resolve()
      reason.resolve(await aborted(run))
      throw new Error('stopped in the middle')
    },
  })
  const id = await createRun(client, { queue, payload: 1 })
  await started.promise
  await client.runs.cancel(id)
  expect(await reason.promise).toBe('canceled')
  expect(await finished(client, id)).toMatchObject({ status: 'canceled', error: 'Error: stopped in the middle' })
})

test('a cancel reaches the handler with a heartbeat when its worker has no room to wait for more', async () => {
  const { client } = server
  const queue = newQueue()
  const started = signal()
  const reason = signal<unknown>()
  startWorker(client, queue, {
    concurrency: 1,
    prefetch: 0,
    leaseMs: 3_000,
    handler: async (run) => {
      started.resolve()
      reason.resolve(await aborted(run))
      return 'done before it could stop'
    },
  })
  const id = await createRun(client, { queue, payload: 1 })
  await started.promise
  await client.runs.cancel(id)
  expect(await reason.promise).toBe('canceled')
  expect((await finished(client, id)).attempt).toBe(1)
})

test('every way in which a handler can end is one in which the attempt ends', async () => {
  const { client } = server
  const queue = newQueue()
  const circle: Record<string, unknown> = {}
  circle.self = circle
  startWorker(client, queue, {
    handler: (run) => {
      switch (run.payload) {
        case 'throws':
          throw new TypeError('no such thing')
        case 'rejects with text':
          return Promise.reject('just text')
        case 'fails for good':
          throw run.fail('not today')
        case 'cancels':
          return run.cancel('not needed')
        case 'snoozes':
          return run.attempt === 1 ? run.snooze('1ms') : 'later'
        case 'retries':
          if (run.failures === 0) throw run.retryIn('PT0.001S', 'once more')
          return `attempt ${run.attempt}`
        case 'circle':
          return circle
        case 'too large':
          return 'x'.repeat(70_000)
        case 'wrong delay':
          throw run.retryIn('soon')
        default:
          return undefined
      }
    },
  })
  const end = async (payload: string, retry = { maxAttempts: 1 }) => {
    const run = await finished(client, await createRun(client, { queue, payload, retry }))
    const { status, error, failureClass, result, attempt, failures } = run
    return { status, error, failureClass, result, attempt, failures }
  }
  const ended = { error: null, failureClass: null, result: null, attempt: 1, failures: 0 }
  const failed = { ...ended, status: 'failed', failureClass: 'handler_error', failures: 1 }
  expect(await end('nothing')).toEqual({ ...ended, status: 'succeeded' })
  expect(await end('throws')).toEqual({ ...failed, error: 'TypeError: no such thing' })
  expect(await end('rejects with text')).toEqual({ ...failed, error: 'just text' })
  expect(await end('fails for good', { maxAttempts: 5 })).toEqual({ ...failed, error: 'not today' })
  expect(await end('cancels')).toMatchObject({ status: 'canceled', error: 'not needed', attempt: 1 })
  expect(await end('snoozes')).toEqual({ ...ended, status: 'succeeded', result: 'later', attempt: 2 })
  expect(await end('retries', { maxAttempts: 2 })).toMatchObject({ status: 'succeeded', result: 'attempt 2' })
  expect(await end('circle')).toEqual({ ...ended, status: 'succeeded' })
  expect(await end('too large')).toEqual({ ...ended, status: 'succeeded' })
  expect((await end('wrong delay')).error).toMatch(/^RunError: a delay must be text such as "90s".* not "soon"$/)
})

test('a handler that overruns its time is told so, and fails by timeout', async () => {
  const { client } = server
  const queue = newQueue()
  startWorker(client, queue, {
    handler: async (run) => {
      throw new Error(`stopped: ${await aborted(run)}`)
    },
  })
  const id = await createRun(client, { queue, payload: 1, timeout: '1s' })
  expect(await finished(client, id)).toMatchObject({
    ...{ status: 'failed', failureClass: 'timeout', attempt: 1 },
    error: expect.stringMatching(/stopped: timeout|time/),
  })
})

test('a checkpoint is there for the next attempt, and for the one that left it', async () => {
  const { client } = server
  const queue = newQueue()
  startWorker(client, queue, {
    handler: async (run) => {
      const before = await run.checkpoint()
      if (run.attempt === 2) return { before }
      await run.checkpoint({ page: 7, text: 'ü' })
      const own = (await run.checkpoint()) as { page: number }
      throw run.retryIn('1ms', `left ${own.page} after ${before}`)
    },
  })
  const run = await finished(client, await createRun(client, { queue, payload: 1, retry: { maxAttempts: 2 } }))
  expect(run.result).toEqual({ before: { page: 7, text: 'ü' } })
  expect(run.attempts[0]).toMatchObject({ number: 1, error: 'left 7 after undefined' })
})

test('progress and log lines can be seen while the handler works, and none is lost at its end', async () => {
  const { client } = server
  const queue = newQueue()
  const half = signal()
  const goOn = signal()
  startWorker(client, queue, {
    handler: async (run) => {
      run.log('begun', 'debug')
      await run.progress(0.5, 'half of it')
      half.resolve()
      await goOn.promise
      for (let i = 0; i < 50; i++) run.log(`line ${i}`, 'warn')
      return 'done'
    },
  })
  const id = await createRun(client, { queue, payload: 1 })
  await half.promise
  const running = await client.runs.get(id)
  expect(running).toMatchObject({ status: 'running', progress: { value: 0.5, text: 'half of it' } })
  expect((await client.runs.logs(id)).items).toMatchObject([{ level: 'debug', message: 'begun' }])
  goOn.resolve()
  await finished(client, id)
  const { items } = await client.runs.logs(id)
  expect(items.map(({ message }) => message)).toEqual(['begun', ...Array.from({ length: 50 }, (_, i) => `line ${i}`)])
})

test('notes that make no sense are refused where they are made', async () => {
  const { client } = server
  const queue = newQueue()
  startWorker(client, queue, {
    handler: async (run) => {
      const words = async (what: Promise<unknown>) => what.then(String, (error: Error) => error.message)
      return [
        await words(run.progress(2)),
        await words(run.checkpoint(undefined)),
        await words(run.checkpoint('x'.repeat(70_000))),
        await words(run.heartbeat()),
      ]
    },
  })
  const run = await finished(client, await createRun(client, { queue, payload: 1 }))
  expect(run.result).toEqual([
    'progress is a number from 0 to 1',
    'a checkpoint must be a JSON value',
    'a checkpoint may have at most 65536 bytes as JSON',
    'undefined',
  ])
})

test('no more handlers are at work than there are slots, and no more leases are held than slots and prefetch', async () => {
  const { client } = server
  const queue = newQueue()
  let active = 0
  let most = 0
  const all = signal()
  let ended = 0
  const { worker } = startWorker(client, queue, {
    concurrency: 4,
    prefetch: 3,
    handler: async () => {
      active++
      most = Math.max(most, active)
      await new Promise((resolve) => setImmediate(resolve))
      active--
      if (++ended === 200) all.resolve()
    },
  })
  const held = vi.spyOn(client.leases, 'lease')
  await client.jobs.createMany(Array.from({ length: 200 }, (_, i) => ({ queue, payload: i })))
  await all.promise
  expect(most).toBe(4)
  expect(Math.max(...held.mock.calls.map(([, call]) => call.max ?? 0))).toBeLessThanOrEqual(7)
  held.mockRestore()
  await worker.stop()
  const { items } = await client.runs.list({ queue, limit: 500 })
  expect(items).toHaveLength(200)
  expect(items.every(({ status, attempt }) => status === 'succeeded' && attempt === 1)).toBe(true)
})

test('a batch handler gets many runs at once and says of each how it ended', async () => {
  const { client } = server
  const queue = newQueue()
  const sizes: number[] = []
  const ids: string[] = []
  for (let i = 0; i < 25; i++) ids.push(await createRun(client, { queue, payload: i }))
  startWorker(client, queue, {
    batch: { size: 10, waitMs: 50 },
    concurrency: 2,
    handler: (runs: Run[]) => {
      sizes.push(runs.length)
      return runs.map((run) => {
        if (run.payload === 3) return new Error('not this one')
        if (run.payload === 4) return run.fail('never')
        return Number(run.payload) * 2
      })
    },
  })
  const runs = await Promise.all(ids.map((id) => finished(client, id)))
  expect(Math.max(...sizes)).toBe(10)
  expect(sizes.length).toBeLessThan(10)
  expect(runs[2]).toMatchObject({ status: 'succeeded', result: 4 })
  expect(runs[3]).toMatchObject({ status: 'failed', error: 'Error: not this one' })
  expect(runs[4]).toMatchObject({ status: 'failed', error: 'never' })
  expect(runs.filter(({ status }) => status === 'succeeded')).toHaveLength(23)
})

test('what a batch handler throws holds for all of its runs', async () => {
  const { client } = server
  const queue = newQueue()
  const ids = [await createRun(client, { queue, payload: 1 }), await createRun(client, { queue, payload: 2 })]
  startWorker(client, queue, {
    batch: { size: 5 },
    handler: async (_runs: Run[]) => {
      throw new RangeError('all of it')
    },
  })
  for (const id of ids)
    expect(await finished(client, id)).toMatchObject({ status: 'failed', error: 'RangeError: all of it' })
})

test('work that may be done at most once is never leased ahead, and is done once', async () => {
  const { client } = server
  const queue = newQueue()
  const jobs = Array.from({ length: 60 }, (_, i) => ({
    ...{ queue, payload: i },
    ...(i % 3 === 0 ? { delivery: 'at_most_once' as const } : {}),
  }))
  await client.jobs.createMany(jobs)
  const all = signal()
  const done: unknown[] = []
  const asked = vi.spyOn(client.leases, 'lease')
  startWorker(client, queue, {
    concurrency: 2,
    prefetch: 5,
    handler: async (run) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (done.push(run.payload) === jobs.length) all.resolve()
    },
  })
  await all.promise
  expect(asked.mock.calls.every(([, { max = 0, prefetch = 0 }]) => max - prefetch <= 2)).toBe(true)
  asked.mockRestore()
  const failures = async () => {
    const { items } = await client.runs.list({ queue, status: 'succeeded', limit: 100 })
    return items.map((run) => run.failures)
  }
  // One that met a slot taken meanwhile was given back, which is no failure.
  await expect.poll(failures).toEqual(jobs.map(() => 0))
  expect(new Set(done).size).toBe(done.length)
})
