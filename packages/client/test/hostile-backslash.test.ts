import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Worker } from '../src/worker/index.ts'
import { type Hostile, startHostile } from './hostile-calls.ts'
import { startTestServer } from './server.ts'

let t: Hostile

beforeAll(async () => {
  t = await startHostile()
})
afterAll(() => t.stop())

/** Six characters that only look like one, as any program that shows source code may return. */
const TEXT = 'a\\u0000b'

test('a result that spells out an escaped NUL is kept as it is', async () => {
  const acme = await t.tenant()
  const run = await acme.one()
  const told = await acme.worker.complete([{ token: run.token, status: 'succeeded', result: { [TEXT]: TEXT } }])
  expect(told).toEqual([{ token: run.token, outcome: 'ok' }])
  expect(await acme.runOf(run.runId)).toMatchObject({ status: 'succeeded', result: { [TEXT]: TEXT } })
})

test('so is one that a handler returns', async () => {
  const server = await startTestServer()
  onTestFinished(() => server.stop())
  const client = server.client()
  const { jobId } = await client.jobs.create({ queue: 'work', payload: 1 })
  const worker = new Worker({ client, queues: { work: { handler: () => TEXT } }, handleSignals: false })
  worker.start()
  onTestFinished(() => worker.stop())
  const [run] = (await client.jobs.runs(jobId)).items
  expect(await client.runs.get(run?.id ?? '', { waitMs: 10_000 })).toMatchObject({ status: 'succeeded', result: TEXT })
})
