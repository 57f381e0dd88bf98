import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Belfry, type JobInput, type Run } from '../../src/index.ts'
import { type BelfryNode, startNodes } from '../chaos/fleet.ts'
import { Ledger } from '../chaos/ledger.ts'
import { createDatabase, type TestDatabase, today } from '../database.ts'

const OUTCOME = { succeeded: 1, failed: 2, canceled: 3 } as const
const FAILURE_CLASS = { timeout: 1, handler_error: 6, lease_expired: 7 } as const

let database: TestDatabase
let belfry: Belfry
let queues = 0

beforeAll(async () => {
  database = await createDatabase({ days: today() })
  belfry = await Belfry.start({ database: database.connection, schema: database.schema, drainMs: 0 })
})

afterAll(async () => {
  await belfry.stop()
  await database.drop()
})

function setup() {
  const uncaught: unknown[] = []
  const hear = (error: unknown) => void uncaught.push(error)
  process.on('unhandledRejection', hear).on('uncaughtException', hear)
  onTestFinished(() => void process.off('unhandledRejection', hear).off('uncaughtException', hear))

  /** Performs one job with the handler and answers its attempts, once it has ended. */
  const perform = async (handler: (run: Run) => unknown, job: JobInput = {}) => {
    const queue = `odd-${++queues}`
    belfry.handle(queue, handler)
    const { jobId } = await belfry.jobs.create({ queue, retry: { maxAttempts: 1 }, ...job })
    const attempts = () =>
      database.query<{
        outcome: number
        failure_class: number | null
        error: string | null
        final: boolean
        result: unknown
      }>('select outcome, failure_class, error, final, result from attempts where job_id = $1 order by number', [jobId])
    await expect.poll(async () => (await attempts()).some(({ final }) => final)).toBe(true)
    expect(await database.query('select from runs where job_id = $1', [jobId])).toEqual([])
    expect(uncaught).toEqual([])
    return attempts()
  }
  return { perform }
}

const cycle: Record<string, unknown> = { name: 'round' }
cycle.self = cycle
const refuse = () => {
  throw new Error('no')
}
const hostile = new Proxy({}, { get: refuse, getPrototypeOf: refuse, ownKeys: refuse, has: refuse })
const revoked = Proxy.revocable({}, {})
revoked.revoke()
const throwingMessage = Object.defineProperty(new Error(), 'message', { get: refuse })
const symbolMessage = Object.defineProperty(new Error(), 'message', { value: Symbol('no text') })

test.each<[what: string, thrown: unknown]>([
  ['undefined', undefined],
  ['null', null],
  ['a symbol', Symbol('odd')],
  ['a bigint', 10n],
  ['a function', () => 1],
  ['an object that contains itself', cycle],
  ['an object without a prototype', Object.create(null)],
  ['a proxy that throws', hostile],
  ['a revoked proxy', revoked.proxy],
  ['an error of 50 MB', new Error('x'.repeat(50_000_000))],
  ['an error with NUL and half a character', new Error('a\0b\ud800c')],
  ['an error whose message throws', throwingMessage],
  ['an error whose message is no text', symbolMessage],
  ['an object whose toJSON throws', { toJSON: refuse }],
  ['an object whose toString throws', { toString: refuse, toJSON: () => undefined }],
])('a handler that throws %s has failed, like any other', async (_what, thrown) => {
  const t = setup()
  const [attempt, ...more] = await t.perform(() => {
    throw thrown
  })
  expect(more).toEqual([])
  expect(attempt).toMatchObject({ outcome: OUTCOME.failed, failure_class: FAILURE_CLASS.handler_error, final: true })
  expect(attempt?.error?.length).toBeGreaterThan(0)
  expect(attempt?.error?.length).toBeLessThan(5_000)
})

test.each<[what: string, rejected: unknown]>([
  ['a proxy that throws', hostile],
  ['undefined', undefined],
  ['an error whose message throws', throwingMessage],
])('a handler that rejects with %s has failed, like any other', async (_what, rejected) => {
  const t = setup()
  expect(await t.perform(() => Promise.reject(rejected))).toMatchObject([{ outcome: OUTCOME.failed, final: true }])
})

test.each<[what: string, returned: unknown]>([
  ['a function', () => 1],
  ['a bigint', 10n],
  ['an object that contains itself', cycle],
  ['an object whose toJSON throws', { toJSON: refuse }],
  ['50 MB', 'x'.repeat(50_000_000)],
  ['a text with NUL', 'a\0b'],
])('a handler that returns %s has succeeded, without a result', async (_what, returned) => {
  const t = setup()
  expect(await t.perform(() => returned)).toMatchObject([{ outcome: OUTCOME.succeeded, result: null, final: true }])
})

test.each<[what: string, returned: unknown]>([
  ['a revoked proxy', revoked.proxy],
  ['an object whose then throws', Object.defineProperty({}, 'then', { get: refuse })],
])('a handler that returns %s has failed, as if it had been awaited', async (_what, returned) => {
  const t = setup()
  expect(await t.perform(() => returned)).toMatchObject([{ outcome: OUTCOME.failed, final: true }])
})

test('a thenable that settles twice, or throws after it settled, counts once', async () => {
  const t = setup()
  const twice = {
    // biome-ignore lint/suspicious/noThenProperty: an odd thenable is what this is about
    then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => {
      resolve('first')
      reject(new Error('second'))
      throw new Error('third')
    },
  }
  expect(await t.perform(() => twice)).toMatchObject([{ outcome: OUTCOME.succeeded, result: 'first' }])
})

test.each<[what: string, verdict: (run: Run) => unknown, outcome: number]>([
  ['fail without a reason', (run) => run.fail(undefined as never), OUTCOME.failed],
  ['fail with an object', (run) => run.fail({ odd: 1 } as never), OUTCOME.failed],
  ['cancel with a symbol', (run) => run.cancel(Symbol('odd') as never), OUTCOME.canceled],
  ['retryIn with no duration', (run) => run.retryIn('soon'), OUTCOME.failed],
  ['retryIn with a reason that is null', (run) => run.retryIn('1s', null as never), OUTCOME.failed],
  ['snooze with undefined', (run) => run.snooze(undefined as never), OUTCOME.failed],
])('a handler that says %s is understood', async (_what, verdict, outcome) => {
  const t = setup()
  expect(await t.perform((run) => verdict(run))).toMatchObject([{ outcome, final: true }])
})

test('a handler that hangs is told that its time is up, its attempt is closed, and its slot is free again', async () => {
  const t = setup()
  let told: unknown
  const attempts = await t.perform(
    (run) => {
      run.signal.addEventListener('abort', () => {
        told = run.signal.reason
      })
      return new Promise(() => {})
    },
    { timeout: '1s' },
  )
  expect(attempts).toMatchObject([{ outcome: OUTCOME.failed, failure_class: FAILURE_CLASS.timeout, final: true }])
  await expect.poll(() => told).toBe('timeout')
})

test('a handler that blocks its process past its timeout is closed by another node, and its late end is refused', async () => {
  const ledger = await Ledger.open()
  const options = { database: database.connection, schema: database.schema, ledger, leaseMs: 2_000 }
  const [blocked] = (await startNodes(1, { ...options, queues: { block: 1 } })) as [BelfryNode]
  await startNodes(1, options)
  await expect.poll(async () => (await database.query('select from nodes')).length).toBe(3)
  const [job] = await blocked.createMany([
    { queue: 'block', payload: { blockMs: 6_000 }, timeout: '1s', retry: { maxAttempts: 1 } },
  ])
  const attempts = () =>
    database.query('select outcome, failure_class, final from attempts where job_id = $1', [job?.jobId])
  // The node that closes it does not know how long the handler would have worked: it knows that its holder is not heard of.
  const closed = [{ outcome: OUTCOME.failed, failure_class: FAILURE_CLASS.lease_expired, final: true }]
  await expect.poll(attempts).toEqual(closed)
  await expect.poll(() => ledger.count('ended_at is not null')).toBe(1)
  // What it finishes next has come after the end that was refused.
  const [next] = await blocked.createMany([{ queue: 'block' }])
  const done = () => database.query('select from attempts where job_id = $1 and outcome = 1', [next?.jobId])
  await expect.poll(async () => (await done()).length).toBe(1)
  expect(await attempts()).toEqual(closed)
  expect(blocked.endedByItself).toBe(false)
})
