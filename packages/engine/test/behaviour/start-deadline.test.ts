import { expect, test } from 'vitest'
import { held, MINUTE, record, startKit } from './kit.ts'
import { EVERY_TEN, leave, setup } from './overlap-kit.ts'

const ended = {
  ...{ status: 'skipped', failureClass: 'start_deadline', error: 'not started by its deadline' },
  attempts: [{ number: 0, counted: false, status: 'skipped', startedAt: null, leasedAt: null }],
}

test('a run that nobody claims by its start deadline ends without ever being leased', async () => {
  const t = await startKit()
  const { jobId } = await t.kit.jobs.create({ ...EVERY_TEN, queue: 'idle', overlap: 'allow', startDeadline: '5m' })
  await t.kit.pass(10 * MINUTE)
  const [run] = (await t.kit.runs.list({ jobId })).items
  await t.kit.pass(5 * MINUTE)
  expect(await t.kit.runs.get(run?.id ?? '')).toMatchObject({ status: 'ready' })
  await t.kit.pass(1)
  await t.kit.settle()
  expect(await t.kit.runs.get(run?.id ?? '')).toMatchObject(ended)
})

test('a run that waits for another past its start deadline ends, and the one behind it is next', async () => {
  const t = await setup()
  const jobId = await t.create('buffer_all', { startDeadline: '25m' })
  await t.pass(46)
  expect(await t.runs(jobId)).toEqual(['10 running', '20 skipped', '30 blocked', '40 blocked'])
  const [skipped] = (await t.kit.runs.list({ jobId, status: 'skipped' })).items
  expect(await t.kit.runs.get(skipped?.id ?? '')).toMatchObject(ended)
  await t.end()
  expect(await t.runs(jobId)).toEqual(['10 succeeded', '20 skipped', '30 running', '40 blocked'])
})

test('a ready run that expires makes way for the one that waits for it', async () => {
  const t = await startKit()
  const job = { ...EVERY_TEN, queue: 'idle', overlap: 'buffer_one', startDeadline: '15m' } as const
  const { jobId } = await t.kit.jobs.create(job)
  await t.kit.pass(25 * MINUTE + 1, leave)
  await t.kit.settle(leave)
  expect((await t.kit.runs.list({ jobId })).items.map(({ status }) => status)).toEqual(['ready', 'skipped'])
})

test('a run that has started is tried again after its start deadline', async () => {
  const t = await startKit()
  let isDown = true
  const seen = await record(t.kit, 'reports', () => (isDown ? Promise.reject(new Error('down')) : 'ok'))
  const retry = { backoff: { type: 'fixed', initial: '9m', jitter: 0 } } as const
  const { jobId } = await t.kit.jobs.create({ ...EVERY_TEN, startDeadline: '5m', retry })
  await t.kit.pass(10 * MINUTE)
  isDown = false
  await t.kit.pass(9 * MINUTE)
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2])
  expect((await t.kit.runs.list({ jobId })).items).toMatchObject([{ status: 'succeeded' }])
})

test('what is leased or a backfill is not ended by its start deadline', async () => {
  const t = await startKit()
  const { gate, letGo } = held()
  await record(t.kit, 'reports', () => gate)
  const { jobId } = await t.kit.jobs.create({ ...EVERY_TEN, overlap: 'allow', startDeadline: '5m' })
  const idle = await t.kit.jobs.create({ ...EVERY_TEN, queue: 'idle', startDeadline: '5m' })
  await t.kit.pass(10 * MINUTE, leave)
  await t.query('update runs set cause = 3 where job_id = $1', [idle.jobId])
  await t.kit.pass(9 * MINUTE, leave)
  expect(await t.kit.expire()).toBe(0)
  letGo()
  await t.kit.settle()
  expect((await t.kit.runs.list({ jobId })).items.map(({ status }) => status)).toEqual(['succeeded'])
  expect((await t.kit.runs.list({ jobId: idle.jobId })).items.map(({ status }) => status)).toEqual(['ready'])
})
