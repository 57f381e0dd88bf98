import { expect, test } from 'vitest'
import { after, job, setup } from './setup.ts'

test('a batch counts how its jobs end, and runs its last job once when all have', async () => {
  const t = await setup()
  t.fails('bad')
  const { batchId, jobs } = await t.kit.batches.create(
    [
      job('good'),
      job('bad'),
      job('never', after('bad')),
      job('unneeded', { after: { jobs: ['good'], on: 'failure' } }),
    ],
    { name: 'import', onFinish: { queue: 'work', payload: 'end' } },
  )
  expect(await t.kit.batches.get(batchId)).toMatchObject({
    name: 'import',
    total: 4,
    open: 4,
    progress: 0,
    finishedAt: null,
  })
  expect((await t.kit.jobs.get(String(jobs[0]?.jobId)))?.batchId).toBe(batchId)
  await t.kit.settle()
  const counts = { succeeded: 1, failed: 1, canceled: 1, skipped: 1, open: 0, progress: 1 }
  expect(await t.kit.batches.get(batchId)).toMatchObject({ ...counts, finishedAt: expect.any(Date) })
  expect(t.seen().filter((name) => name === 'end')).toEqual(['end'])
  expect(t.seen().at(-1)).toBe('end')
  t.works('bad')
  await t.kit.runs.retry(String((await t.lastRun(jobs[1]?.jobId))?.id))
  expect(await t.kit.batches.get(batchId)).toMatchObject({ open: 2, failed: 0, canceled: 0, finishedAt: null })
  await t.kit.settle()
  expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: 3, failed: 0, canceled: 0, skipped: 1, open: 0 })
  expect(t.seen().filter((name) => name === 'end')).toEqual(['end'])
})

test('the same request is the same batch', async () => {
  const t = await setup()
  const call = [job('a', { idempotencyKey: 'a' }), job('b', { idempotencyKey: 'b' })]
  const onFinish = { queue: 'work', payload: 'end', idempotencyKey: 'end' }
  const first = await t.kit.batches.create(call, { onFinish })
  const again = await t.kit.batches.create(call, { onFinish })
  expect(again.batchId).toBe(first.batchId)
  await t.kit.settle()
  expect(t.seen().sort()).toEqual(['a', 'b', 'end'])
  expect(await t.kit.batches.get(first.batchId)).toMatchObject({ total: 2, succeeded: 2 })
})

test('a batch in which two are one job counts it once, and finishes', async () => {
  const t = await setup()
  const unique = { unique: { key: 'u' } }
  const same = { idempotencyKey: 'same', payload: 'same' }
  const { batchId } = await t.kit.batches.create(
    [job('x', unique), job('y', unique), { queue: 'work', ...same }, { queue: 'work', ...same }],
    { onFinish: { queue: 'work', payload: 'end' } },
  )
  expect(await t.kit.batches.get(batchId)).toMatchObject({ total: 2, open: 2 })
  await t.kit.settle()
  expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: 2, open: 0, finishedAt: expect.any(Date) })
  expect(t.seen().at(-1)).toBe('end')
})

test('a batch all of whose jobs were there by their unique keys is a batch of its own', async () => {
  const t = await setup()
  const unique = { unique: { key: 'u' } }
  const first = await t.kit.batches.create([job('x', unique), job('z')], { name: 'first' })
  const call = [job('y', { ...unique, idempotencyKey: 'y' })]
  const second = await t.kit.batches.create(call, { name: 'second' })
  expect(second.jobs[0]?.jobId).toBe(first.jobs[0]?.jobId)
  expect(await t.kit.batches.get(second.batchId)).toMatchObject({ name: 'second', total: 1, open: 1 })
  const again = await t.kit.batches.create(call, { name: 'second' })
  expect(again.batchId).not.toBe(first.batchId)
  await t.kit.settle()
  for (const { batchId } of [second, again])
    expect(await t.kit.batches.get(batchId)).toMatchObject({ succeeded: 1, open: 0 })
})

test('what no batch can count is refused, and nothing of it is made', async () => {
  const t = await setup()
  const recurring = [job('a'), job('b', { every: 'PT1M' })]
  await expect(t.kit.batches.create(recurring)).rejects.toMatchObject({
    message: expect.stringContaining('never finishes'),
  })
  await expect(t.kit.batches.create([])).rejects.toMatchObject({ code: 'invalid_job' })
  const timed = { onFinish: { queue: 'work', payload: 1, delay: '1h' } }
  await expect(t.kit.batches.create([job('a')], timed)).rejects.toMatchObject({
    message: expect.stringContaining('batch.onFinish'),
  })
  expect(await t.query('select from batches union all select from specs union all select from jobs')).toEqual([])
})
