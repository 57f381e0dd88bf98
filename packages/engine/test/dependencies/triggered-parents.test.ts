import { expect, test } from 'vitest'
import { HOUR, held, MINUTE } from '../behaviour/kit.ts'
import { after, job, setup } from './setup.ts'

/** A batch of a job that is due in an hour and one that waits for it. */
async function setupBatch() {
  const t = await setup()
  const { batchId, jobs } = await t.kit.batches.create([job('p', { delay: '1h' }), job('c', after('p'))])
  const [p, c] = jobs.map(({ jobId }) => jobId) as [string, string]
  const counts = async () => {
    const { open, succeeded, failed, canceled } = (await t.kit.batches.get(batchId)) ?? {}
    return { open, succeeded, failed, canceled }
  }
  const trigger = async () => {
    const { runId } = await t.kit.jobs.trigger(p)
    await t.kit.settle()
    return runId
  }
  return { ...t, p, c, counts, trigger }
}

const UNTOUCHED = { open: 2, succeeded: 0, failed: 0, canceled: 0 }

test('a run that was triggered before the time of its one-off tells neither children nor the batch that the job has ended', async () => {
  const t = await setupBatch()
  await t.trigger()
  expect(t.seen()).toEqual(['p'])
  expect(await t.counts()).toEqual(UNTOUCHED)
  await t.kit.pass(HOUR)
  expect(t.seen()).toEqual(['p', 'p', 'c'])
  expect(await t.counts()).toEqual({ open: 0, succeeded: 2, failed: 0, canceled: 0 })
  expect(await t.query('select from edges')).toEqual([])
})

test('a triggered run that fails, is opened again or canceled leaves the children of its one-off as they are', async () => {
  const t = await setupBatch()
  t.fails('p')
  const runId = await t.trigger()
  expect(await t.counts()).toEqual(UNTOUCHED)
  await t.kit.runs.retry(runId)
  await t.kit.settle()
  const { runId: other } = await t.kit.jobs.trigger(t.p)
  await t.kit.runs.cancel(other)
  await t.kit.settle()
  expect(await t.counts()).toEqual(UNTOUCHED)
  await t.kit.pass(HOUR)
  expect(await t.counts()).toEqual({ open: 0, succeeded: 0, failed: 1, canceled: 1 })
  // Its children belong to the run of its own time, and are opened with that alone.
  await t.kit.runs.retry(runId)
  expect(await t.counts()).toEqual({ open: 0, succeeded: 0, failed: 1, canceled: 1 })
  t.works('p')
  await t.kit.runs.retry(String((await t.lastRun(t.p))?.id))
  await t.kit.settle()
  expect(await t.counts()).toEqual({ open: 0, succeeded: 2, failed: 0, canceled: 0 })
})

test('a one-off that is canceled before its time has ended, also while a triggered run is under way', async () => {
  const t = await setupBatch()
  const { gate, letGo } = held()
  t.acts.set('p', () => gate)
  const { runId } = await t.kit.jobs.trigger(t.p)
  await t.kit.settle({ running: 'leave' })
  await t.kit.jobs.cancel(t.p, { running: 'finish' })
  await t.kit.settle({ running: 'leave' })
  expect(await t.counts()).toEqual({ open: 0, succeeded: 0, failed: 0, canceled: 2 })
  letGo()
  await t.kit.settle()
  expect((await t.kit.runs.get(runId))?.status).toBe('succeeded')
  expect(await t.counts()).toEqual({ open: 0, succeeded: 0, failed: 0, canceled: 2 })
  expect([await t.status(t.p), await t.status(t.c)]).toEqual(['canceled', 'canceled'])
  expect(await t.kit.jobs.cancel(t.p)).toEqual({ status: 'canceled' })
})

test('a job that begins to wait for a one-off is told of its own run, whatever became of a triggered one', async () => {
  const t = await setup()
  const late = { payload: 'late', queue: 'work', retry: { maxAttempts: 1 } }
  const ids = await t.create(job('p', { delay: '1m' }), job('q', { delay: '1m' }))
  t.fails('p')
  const { runId } = await t.kit.jobs.trigger(String(ids.p))
  await t.kit.settle()
  t.works('p')
  const { gate, letGo } = held()
  const { runId: underWay } = await t.kit.jobs.trigger(String(ids.q))
  t.acts.set('q', (run) => (run.id === underWay ? gate : undefined))
  await t.kit.pass(MINUTE, { running: 'leave' })
  // The triggered run of the one has failed, that of the other is still at work; the jobs themselves have succeeded.
  const child = await t.kit.jobs.create({ ...late, after: { jobs: [String(ids.p), String(ids.q)] } })
  await t.kit.settle({ running: 'leave' })
  expect(await t.status(child.jobId)).toBe('succeeded')
  const { parents } = (await t.lastRun(child.jobId)) ?? {}
  expect(parents).toMatchObject([
    { jobId: ids.p, status: 'succeeded' },
    { jobId: ids.q, status: 'succeeded' },
  ])
  expect(parents?.map((parent) => parent.runId)).not.toContain(runId)
  letGo()
  await t.kit.settle()
  await expect(t.kit.jobs.cancel(String(ids.p))).rejects.toMatchObject({ code: 'already_finished' })
})

test('a one-off that was triggered while it was paused past its time is what its own run became', async () => {
  const t = await setupBatch()
  await t.kit.jobs.pause(t.p)
  await t.kit.pass(2 * HOUR)
  await t.trigger()
  expect(await t.counts()).toEqual(UNTOUCHED)
  t.fails('p')
  await t.kit.jobs.resume(t.p)
  await t.kit.settle()
  expect([await t.status(t.p), await t.status(t.c)]).toEqual(['failed', 'canceled'])
  const own = await t.kit.tenant('default')
  const failed = await own.jobs.list({ status: 'failed' })
  expect(failed.items.map(({ jobId }) => jobId)).toEqual([t.p])
})
