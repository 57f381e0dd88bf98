import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit } from '../testing/index.ts'
import { rateInWords } from './in-words.ts'

const START = Date.UTC(2026, 0, 5, 8)
const MINUTE = 60_000

async function setup() {
  const database = await createDatabase({ days: { around: START, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: START, seed: 1 })
  onTestFinished(() => kit.stop())
  const own = await kit.tenant('default', 'bk_own')
  return { kit, jobs: own.jobs, workers: own.workers }
}

test('without a time, a job that runs once is explained by its run, however long that waits', async () => {
  const t = await setup()
  const rateLimit = { key: 'z', limit: 1, period: '366d', burst: 1 }
  const [first, second] = await t.jobs.createMany([
    { queue: 'mail', payload: 1, rateLimit },
    { queue: 'mail', payload: 2, rateLimit },
  ])
  const later = await t.jobs.create({ queue: 'mail', payload: 3, delay: '2h' })
  const lonely = await t.jobs.create({ queue: 'nobody', payload: 4 })
  await t.kit.handle('mail', () => {})
  await t.kit.settle()
  await t.kit.pass(10 * MINUTE)
  expect(await t.jobs.explain(first?.jobId ?? '')).toMatchObject({ verdict: 'ran', run: { status: 'succeeded' } })
  const waiting = await t.jobs.explain(second?.jobId ?? '')
  expect(waiting).toMatchObject({ verdict: 'waiting', reason: 'key_limited', nominalAt: new Date(START) })
  expect(waiting.sentence).toContain('the rate of the key "z", 1 in 366 days')
  expect(await t.jobs.explain(later.jobId)).toMatchObject({ verdict: 'will_run' })
  // Canceled runs of a queue are no sign that somebody works on it.
  await t.jobs.cancel((await t.jobs.create({ queue: 'nobody', payload: 5 })).jobId)
  expect(await t.jobs.explain(lonely.jobId)).toMatchObject({
    ...{ verdict: 'waiting', reason: 'ready' },
    waits: { expectedStartAt: null, expectedStartNote: 'nobody takes work of this queue now' },
  })
})

test('a run that onLimit has skipped says so, and knows of no deadline', async () => {
  const t = await setup()
  const job = { queue: 'mail', concurrency: { key: 'one', limit: 1, onLimit: 'skip' as const } }
  let finish = () => {}
  await t.kit.handle('mail', () => new Promise<void>((resolve) => (finish = resolve)))
  await t.jobs.create({ ...job, payload: 1 })
  await t.kit.settle({ running: 'leave' })
  const { jobId } = await t.jobs.create({ ...job, payload: 2 })
  await t.kit.settle({ running: 'leave' })
  expect(await t.jobs.explain(jobId)).toMatchObject({
    verdict: 'skipped',
    reason: 'on_limit',
    sentence: expect.stringContaining('the only slot of the key "one" was taken, and onLimit is skip'),
  })
  finish()
})

/** Leases one run of the queue as a worker does; nobody asks again after it. */
async function leaseOne({ workers }: Awaited<ReturnType<typeof setup>>) {
  const call = { workerId: 'w', max: 1, waitMs: 0, leaseMs: 30_000 }
  const [run] = (await workers.lease('mail', call, new AbortController().signal)).runs
  return {
    id: run?.runId ?? '',
    complete: () => workers.complete('w', [{ token: run?.token ?? '', status: 'succeeded' }]),
  }
}

test('a ready run that no worker has asked for since its key was taken waits for its key, and is told who holds it', async () => {
  const t = await setup()
  const job = { queue: 'mail', payload: 1, concurrency: { limit: 1, key: 'account' } }
  await t.jobs.create(job)
  const holder = await leaseOne(t)
  const { jobId } = await t.jobs.create(job)
  const found = await t.jobs.explain(jobId)
  expect(found).toMatchObject({ verdict: 'waiting', reason: 'key_limited', run: { status: 'ready' } })
  expect(found.sentence).toContain(`waits for a slot of the key "account", which has 1; held by ${holder.id}.`)
  await holder.complete()
  expect(await t.jobs.explain(jobId)).toMatchObject({ verdict: 'waiting', reason: 'ready', waits: { keyLimit: null } })
})

test('a ready run that no worker has asked for since the rate of its key was used up waits for that rate', async () => {
  const t = await setup()
  const job = { queue: 'mail', payload: 1, rateLimit: { key: 'api', limit: 1, period: '1h' } }
  await t.jobs.create(job)
  const first = await leaseOne(t)
  await first.complete()
  const { jobId } = await t.jobs.create(job)
  const found = await t.jobs.explain(jobId)
  expect(found).toMatchObject({ verdict: 'waiting', reason: 'key_limited', run: { status: 'ready' } })
  expect(found.sentence).toContain('waits for the rate of the key "api", 1 per hour.')
  t.kit.clock.advance(60 * MINUTE)
  expect(await t.jobs.explain(jobId)).toMatchObject({ reason: 'ready' })
})

test('a job that waits for another is told why that does not go on, and cannot be paused', async () => {
  const t = await setup()
  const parent = await t.jobs.create({ queue: 'mail', payload: 1, delay: '1h' })
  const child = { queue: 'mail', payload: 2, after: { jobs: [parent.jobId] }, onParentFailure: 'block' as const }
  const { jobId } = await t.jobs.create(child)
  await t.jobs.pause(parent.jobId)
  expect((await t.jobs.explain(jobId)).sentence).toContain(`waits for job ${parent.jobId}, which is paused.`)
  const changes = [() => t.jobs.pause(jobId), () => t.jobs.resume(jobId), () => t.jobs.update(jobId, { payload: 3 })]
  for (const change of changes)
    await expect(change()).rejects.toMatchObject({
      code: 'already_due',
      message: expect.stringMatching(/waits for other jobs .* can be triggered, .* or canceled/),
    })
  await t.jobs.cancel(parent.jobId)
  await t.kit.settle()
  expect((await t.jobs.explain(jobId)).sentence).toMatch(
    /did not succeed and cannot be retried: it goes on when somebody triggers it\.$/,
  )
})

test('rates are said as people say them', () => {
  const said = [1_000, 60_000, 86_400_000, 90_000, 1_500, 366 * 86_400_000, 1].map((periodMs) =>
    rateInWords({ limit: 2, periodMs }),
  )
  expect(said).toEqual([
    ...['2 per second', '2 per minute', '2 per day', '2 in 90 seconds', '2 in 1500 ms', '2 in 366 days', '2 in 1 ms'],
  ])
})
