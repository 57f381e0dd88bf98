import { expect, onTestFinished, test } from 'vitest'
import { BelfryApiError } from '../src/index.ts'
import { readAttempts } from './chaos-audit.ts'
import { Ledger } from './chaos-ledger.ts'
import { HandlingProcess } from './handling-process.ts'
import { startTestServer } from './server.ts'

const GRACE_MS = 3_000
/** The last calls, and the end of the process. Whoever waited for those that are deaf would wait for ever. */
const MARGIN_MS = 20_000
const QUICK = 80
const SLOW = 20

async function setup() {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const ledger = await Ledger.open()
  const worker = new HandlingProcess({
    ...{ url: server.url, key: server.adminKey, queue: 'work', ledger },
    ...{ concurrency: QUICK + SLOW, graceMs: GRACE_MS, leaseMs: 60_000 },
  })
  const create = async (count: number, payload: object) => {
    const jobs = Array.from({ length: count }, () => ({ queue: 'work', payload, retry: { maxAttempts: 1 } }))
    return (await server.client().jobs.createMany(jobs)).map(({ jobId }) => jobId)
  }
  const runsOf = async (jobIds: string[]) => {
    const of = new Set(jobIds)
    const runs = []
    for await (const run of server.client().runs.list({ queue: 'work', limit: 200 }))
      if (of.has(run.jobId)) runs.push(run)
    return runs
  }
  return { server, worker, create, runsOf }
}

test('SIGTERM leaves what ends in time finished and the rest ready again, as if it had never begun', async () => {
  const t = await setup()
  // Each ends when the worker is told to stop and a little later: none of them could have ended before.
  const quick = (
    await Promise.all(Array.from({ length: 8 }, (_, i) => t.create(QUICK / 8, { until: 'stopping', ms: 200 * i })))
  ).flat()
  const slow = [
    ...(await t.create(SLOW / 2, { until: 'aborted' })),
    // Deaf to every signal.
    ...(await t.create(SLOW / 2, { until: 'never' })),
  ]
  await t.worker.busyWith(QUICK + SLOW)
  // More than it can take: what waits here or there must not be touched.
  const untouched = await t.create(30, { until: 'never' })

  const began = performance.now()
  t.worker.signal('SIGTERM')
  expect(await t.worker.ended).toBe(0)
  const tookMs = performance.now() - began
  expect(tookMs).toBeGreaterThan(GRACE_MS - 100)
  expect(tookMs).toBeLessThan(GRACE_MS + MARGIN_MS)
  expect(t.worker.errors).toEqual([])

  const finished = await t.runsOf(quick)
  expect(finished).toHaveLength(QUICK)
  for (const run of finished) expect(run).toMatchObject({ status: 'succeeded', attempt: 1, failures: 0 })
  const givenBack = await t.runsOf(slow)
  expect(givenBack).toHaveLength(SLOW)
  for (const run of givenBack) expect(run).toMatchObject({ status: 'ready', attempt: 1, failures: 0 })
  const others = await t.runsOf(untouched)
  expect(others).toHaveLength(30)
  for (const run of others) expect(run).toMatchObject({ status: 'ready', failures: 0 })

  const attempts = (await readAttempts(t.server.query)).filter(({ runId }) => slow.includes(runId.split('.')[0] ?? ''))
  expect(attempts).toHaveLength(SLOW)
  for (const one of attempts)
    expect(one).toMatchObject({ number: 1, outcome: 'released', counted: false, final: false })

  // Nobody waits for a lease to run out: who comes next gets all of it at once, although one failure would be the last.
  const { runs } = await t.server.client().leases.lease('work', { workerId: 'next', max: 100, waitMs: 5_000 })
  expect(runs.filter(({ jobId }) => slow.includes(jobId))).toHaveLength(SLOW)
  const gone = await t.server
    .client()
    .workers.get(t.worker.id)
    .catch((error: unknown) => error)
  expect(gone).toBeInstanceOf(BelfryApiError)
  expect(gone).toMatchObject({ code: 'not_found' })
})
