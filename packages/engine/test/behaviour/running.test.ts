import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { at, HOUR, MINUTE, record, SECOND, START, startKit } from './kit.ts'

test('a job without a time runs once, at once, and its creation is its nominal time', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: { to: 'ada' } })
  await kit.settle()
  await kit.pass(HOUR)
  expect(seen).toMatchObject([{ nominalAt: at(0), attempt: 1, payload: { to: 'ada' }, at: at(0) }])
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'succeeded', nextRunAt: null })
})

test('a delayed job runs once when its time has come, and not a millisecond before', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, delay: '90s' })
  kit.clock.advance(90 * SECOND - 1)
  await kit.settle()
  expect(seen).toEqual([])
  kit.clock.advance(1)
  await kit.settle()
  await kit.pass(HOUR)
  expect(seen).toMatchObject([{ nominalAt: at(90 * SECOND), at: at(90 * SECOND) }])
  expect(await kit.runs.get(runIdOf(jobId, START + 90 * SECOND))).toMatchObject({ status: 'succeeded', attempt: 1 })
})

test('a job for a time that has passed runs at once and keeps that time as its nominal time', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  await kit.jobs.create({ queue: 'emails', payload: 1, runAt: at(-HOUR) })
  await kit.settle()
  expect(seen).toMatchObject([{ nominalAt: at(-HOUR), at: at(0) }])
})

test('a recurring job runs once at each of its times', async () => {
  const { kit, query } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ queue: 'reports', cron: '*/10 * * * *', payload: 1 })
  await kit.pass(HOUR)
  const times = [0, 10, 20, 30, 40, 50, 60].map((minute) => at(minute * MINUTE))
  expect(seen.map(({ nominalAt }) => nominalAt)).toEqual(times)
  expect(seen.map((run) => run.at)).toEqual(times)
  expect(await query('select from skips')).toEqual([])
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'active', nextRunAt: at(70 * MINUTE) })
})

test('jitter delays a run by the same offset each time, and its nominal time stays', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  await kit.jobs.create({ queue: 'reports', every: 'PT10M', jitter: '5m', payload: 1 })
  await kit.pass(HOUR)
  const offsets = seen.map((run) => run.at.getTime() - run.nominalAt.getTime())
  expect(seen.length).toBeGreaterThanOrEqual(5)
  expect(new Set(offsets).size).toBe(1)
  expect(offsets[0]).toBeGreaterThan(0)
  expect(offsets[0]).toBeLessThan(5 * MINUTE)
})

test('what a handler returns is the result of the run', async () => {
  const { kit } = await startKit()
  await record(kit, 'emails', () => ({ sent: 3 }))
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1 })
  await kit.settle()
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({ status: 'succeeded', result: { sent: 3 } })
})

test('a higher priority goes first', async () => {
  const { kit } = await startKit()
  const order: unknown[] = []
  await kit.jobs.create({ queue: 'emails', payload: 'usual' })
  await kit.jobs.create({ queue: 'emails', payload: 'urgent', priority: 9 })
  await kit.jobs.create({ queue: 'emails', payload: 'whenever', priority: 0 })
  await kit.handle('emails', (run) => void order.push(run.payload), { concurrency: 1 })
  await kit.settle()
  expect(order).toEqual(['urgent', 'usual', 'whenever'])
})

test('a run that cannot start by its deadline is skipped and says so', async () => {
  const { kit } = await startKit()
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, startDeadline: '1m' })
  kit.clock.advance(2 * MINUTE)
  const seen = await record(kit, 'emails')
  await kit.settle()
  expect(seen).toEqual([])
  expect(await kit.runs.get(runIdOf(jobId, START))).toMatchObject({
    status: 'skipped',
    failureClass: 'start_deadline',
  })
})
