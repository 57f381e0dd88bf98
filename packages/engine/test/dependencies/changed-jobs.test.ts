import { expect, test } from 'vitest'
import { HOUR, MINUTE } from '../behaviour/kit.ts'
import { after, job, setup } from './setup.ts'

test('a job of a batch that is changed is still a job of that batch, and of its creator', async () => {
  const t = await setup()
  const ours = await t.kit.tenant('default', 'ours')
  const { batchId, jobs } = await ours.batches.create([job('a', { delay: '1h' })], {})
  const jobId = String(jobs[0]?.jobId)
  await t.kit.jobs.update(jobId, { payload: 'b' })
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ batchId, createdBy: 'ours', payload: 'b', version: 2 })
  await t.kit.pass(2 * HOUR)
  expect(t.seen()).toEqual(['b'])
  expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: 1, open: 0 })
})

test('a job of a batch that is upserted as it is stays as it is, and otherwise a job of that batch', async () => {
  const t = await setup()
  const own = await t.kit.tenant('default')
  const { ref, ...said } = job('a', { runAt: new Date(t.kit.clock.now() + HOUR) })
  const { batchId, jobs } = await t.kit.batches.create([{ ...said, name: 'n' }])
  const jobId = String(jobs[0]?.jobId)
  expect(await own.jobs.upsert('n', said)).toEqual({ jobId, created: false, version: 1 })
  expect(await own.jobs.upsert('n', { ...said, priority: 9 })).toEqual({ jobId, created: false, version: 2 })
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ batchId, priority: 9 })
})

test('a job that follows others keeps their local names when it is changed or upserted', async () => {
  const t = await setup()
  const own = await t.kit.tenant('default')
  const start = new Date(t.kit.clock.now() + 10 * MINUTE)
  const ids = await t.create(job('a', { every: 'PT10M', startAt: start }), job('b', { ...after('a'), name: 'n' }))
  await t.kit.jobs.update(String(ids.b), { priority: 9 })
  const { ref, ...said } = job('b', { ...after(String(ids.a)), priority: 9 })
  expect(await own.jobs.upsert('n', said)).toMatchObject({ created: false, version: 2 })
  await t.kit.pass(10 * MINUTE)
  expect(await t.lastRun(ids.b)).toMatchObject({ parents: [{ jobId: ids.a, ref: 'a', status: 'succeeded' }] })
})

test('a job that another replaces stays the job of its batch and of its creator', async () => {
  const t = await setup()
  const unique = { unique: { key: 'k', onConflict: 'replace' as const } }
  const ours = await t.kit.tenant('default', 'ours')
  const theirs = await t.kit.tenant('default', 'theirs')
  const { batchId, jobs } = await ours.batches.create([{ ...job('old', { delay: '1h' }), ...unique }], {})
  const jobId = String(jobs[0]?.jobId)
  const { ref, ...wanted } = { ...job('new', { delay: '2h' }), ...unique }
  expect(await theirs.jobs.create(wanted)).toMatchObject({ jobId, replaced: true })
  expect(await t.kit.jobs.get(jobId)).toMatchObject({ batchId, payload: 'new', createdBy: 'ours' })
  const [last] = (await ours.jobs.changes(jobId)).items.slice(-1)
  expect(last).toMatchObject({ action: 'replace', actor: 'theirs' })
})
