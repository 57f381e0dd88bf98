import { expect, onTestFinished, test } from 'vitest'
import { type Run, Worker } from '../src/worker/index.ts'
import { startTestServer } from './server.ts'

const cycle: Record<string, unknown> = {}
cycle.self = cycle
const deep = (depth: number) => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`) as unknown
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** What handlers may return, throw, leave and say. */
const ODD: Record<string, unknown> = {
  nul: 'a\u0000b',
  nulKey: { 'a\u0000b': 1 },
  surrogate: 'a\ud800b',
  surrogateKey: { '\udc00': 1 },
  controls: '\u0001\u001b[2J\u2028',
  deep200: deep(200),
  deep5000: deep(5_000),
  cycle,
  bigint: 10n,
  symbol: Symbol('odd'),
  function: () => 1,
  notANumber: Number.NaN,
  date: new Date(Number.NaN),
  getter: Object.defineProperty({}, 'a', {
    enumerable: true,
    get: () => {
      throw new Error('no')
    },
  }),
  toJson: {
    toJSON: () => {
      throw new Error('no')
    },
  },
  proxy: new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error('no')
      },
    },
  ),
  null: null,
  large: 'x'.repeat(5_000_000),
  empty: '',
}

async function setup(handler: (run: Run, odd: unknown) => unknown) {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const client = server.client()
  const names = Object.keys(ODD)
  const job = (name: string) => ({ queue: 'work', payload: name, retry: { maxAttempts: 1 } })
  const made = await client.jobs.createMany([...names, 'plain'].map(job))
  const worker = new Worker({
    client,
    // All at once, so that their ends go to the server together.
    queues: {
      work: {
        concurrency: 100,
        handler: (run) => (run.payload === 'plain' ? 'plain' : handler(run, ODD[run.payload as string])),
      },
    },
    handleSignals: false,
    logger: silent,
  })
  worker.start()
  onTestFinished(() => worker.stop())
  const ended = await Promise.all(
    made.map(async ({ jobId }) => {
      const [run] = (await client.jobs.runs(jobId)).items
      return client.runs.get(run?.id ?? '', { waitMs: 20_000 })
    }),
  )
  return { ended: new Map(ended.map((run, i) => [[...names, 'plain'][i], run])), client }
}

test('whatever handlers return, what they did is done', async () => {
  const { ended } = await setup((_, odd) => odd)
  for (const [name, run] of ended) expect(run, name).toMatchObject({ status: 'succeeded', attempt: 1 })
  expect(ended.get('plain')?.result).toBe('plain')
  expect(ended.get('controls')?.result).toBe(ODD.controls)
})

test('whatever handlers throw, they have failed, and it is said why', async () => {
  const { ended } = await setup((_, odd) => {
    throw odd
  })
  for (const [name, run] of ended) {
    if (name === 'plain') expect(run).toMatchObject({ status: 'succeeded', result: 'plain' })
    else expect(run, name).toMatchObject({ status: 'failed', failures: 1, failureClass: 'handler_error' })
    if (name !== 'plain') expect(run.error?.length, name).toBeGreaterThan(0)
  }
})

test('whatever handlers leave and say, it costs nobody a lease', async () => {
  const { ended } = await setup(async (run, odd) => {
    const kept = await run.checkpoint(odd).then(
      () => true,
      () => false,
    )
    try {
      run.log(odd as string)
    } catch {}
    await run.progress(0.5, typeof odd === 'string' ? odd : 'x').catch(() => {})
    await run.heartbeat()
    return { kept }
  })
  for (const [name, run] of ended) expect(run, name).toMatchObject({ status: 'succeeded', attempt: 1 })
  expect(ended.get('controls')?.result).toEqual({ kept: true })
})
