import { expect, test } from 'vitest'
import { runIdOf } from '../../src/job/ids.ts'
import { SKIP_REASON } from '../../src/job/states.ts'
import { at, HOUR, held, MINUTE, record, SECOND, START, startKit } from './kit.ts'

const leave = { running: 'leave' } as const
/** Ten minutes after the kit's clock begins, so that creating decides nothing by itself. */
const EVERY_TEN = { cron: '*/10 * * * *', startAt: at(10 * MINUTE), queue: 'reports', payload: 1 } as const
const minutes = (...list: number[]): Date[] => list.map((minute) => at(minute * MINUTE))
const nominals = (seen: { nominalAt: Date }[]): Date[] => seen.map(({ nominalAt }) => nominalAt)

test('after downtime the latest nominal time is run, and the others are one skip', async () => {
  const { kit, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, catchUp: { policy: 'latest', window: '2h' } })
  kit.clock.advance(65 * MINUTE)
  await kit.settle()
  expect(nominals(seen)).toEqual(minutes(60))
  expect(await skipsOf(jobId)).toEqual([
    { from: at(10 * MINUTE), to: at(60 * MINUTE), reason: SKIP_REASON.catch_up_expired, count: 5 },
  ])
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(60, 70))
})

test('with catch-up none everything that is late is one skip', async () => {
  const { kit, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, catchUp: { policy: 'none' } })
  kit.clock.advance(65 * MINUTE)
  await kit.settle()
  expect(seen).toEqual([])
  expect(await skipsOf(jobId)).toEqual([
    { from: at(10 * MINUTE), to: at(64 * MINUTE + 1), reason: SKIP_REASON.catch_up_expired, count: 6 },
  ])
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(70))
})

test('with catch-up all every nominal time within the window is run, and what is older is one skip', async () => {
  const { kit, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const catchUp = { policy: 'all', window: '40m' } as const
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, overlap: 'allow', catchUp })
  kit.clock.advance(65 * MINUTE)
  await kit.settle()
  expect(nominals(seen)).toEqual(minutes(30, 40, 50, 60))
  expect(await skipsOf(jobId)).toEqual([
    { from: at(10 * MINUTE), to: at(30 * MINUTE), reason: SKIP_REASON.catch_up_expired, count: 2 },
  ])
  expect(await kit.runs.get(runIdOf(jobId, START + 30 * MINUTE))).toMatchObject({ cause: 'catch_up' })
})

test('catch-up all makes no more than max runs, the latest ones', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  await kit.jobs.create({ ...EVERY_TEN, overlap: 'allow', catchUp: { policy: 'all', window: '1d', max: 2 } })
  kit.clock.advance(65 * MINUTE)
  await kit.settle()
  expect(nominals(seen)).toEqual(minutes(50, 60))
})

test('catch-up of thousands is done in portions and is complete', async () => {
  const { kit, query, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const catchUp = { policy: 'all', window: '30d', max: 1_000 } as const
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, overlap: 'allow', catchUp })
  kit.clock.advance(2_005 * 10 * MINUTE + 2 * MINUTE)
  await kit.settle()
  expect(seen).toHaveLength(1_000)
  expect(new Set(seen.map(({ id }) => id)).size).toBe(1_000)
  expect(await query('select from runs')).toEqual([])
  const skipped = (await skipsOf(jobId)).reduce((sum, skip) => sum + (skip.count ?? 0), 0)
  expect(skipped + seen.length).toBe(2_005)
})

test('a nominal time less than a minute late is simply run', async () => {
  const { kit, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, catchUp: { policy: 'none' } })
  kit.clock.advance(10 * MINUTE + 59 * SECOND)
  await kit.settle()
  expect(nominals(seen)).toEqual(minutes(10))
  expect(await skipsOf(jobId)).toEqual([])
})

test('under overlap skip a nominal time that meets a live run is skipped, and the record says so', async () => {
  const { kit, skipsOf } = await startKit()
  const { gate, letGo } = held()
  const seen = await record(kit, 'reports', () => gate)
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, timeout: '1h' })
  await kit.pass(25 * MINUTE, leave)
  letGo()
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(10, 30))
  expect(await skipsOf(jobId)).toEqual([
    { from: at(20 * MINUTE), to: at(20 * MINUTE + 1), reason: SKIP_REASON.overlap, count: 1 },
  ])
})

test('under overlap skip a run in backoff counts as live', async () => {
  const { kit, skipsOf } = await startKit()
  const backoff = { type: 'fixed', initial: '15m', jitter: 0 } as const
  const seen = await record(kit, 'reports', (run) => {
    if (run.attempt === 1 && run.nominalAt < at(15 * MINUTE)) throw new Error('down')
  })
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, retry: { backoff } })
  await kit.pass(35 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(10, 10, 30))
  expect(await skipsOf(jobId)).toHaveLength(1)
})

test('what falls into a pause is one skip, and resuming goes on from now', async () => {
  const { kit, skipsOf } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  await kit.pass(15 * MINUTE)
  expect(await kit.jobs.pause(jobId, { reason: 'holidays' })).toEqual({ status: 'paused' })
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'paused', pausedReason: 'holidays', nextRunAt: null })
  await kit.pass(HOUR)
  expect(await kit.jobs.pause(jobId)).toEqual({ status: 'paused' })
  expect(await kit.jobs.resume(jobId)).toEqual({ status: 'active' })
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(10, 80))
  expect(await skipsOf(jobId)).toEqual([
    { from: at(20 * MINUTE), to: at(75 * MINUTE + 1), reason: SKIP_REASON.paused, count: 6 },
  ])
})

test('a nominal time that was due before a pause is run, though nobody had promoted it', async () => {
  const { kit, skipsOf } = await startKit()
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  kit.clock.advance(10 * MINUTE + SECOND)
  await kit.jobs.pause(jobId)
  const seen = await record(kit, 'reports')
  await kit.pass(HOUR)
  expect(nominals(seen)).toEqual(minutes(10))
  expect(await skipsOf(jobId)).toEqual([])
})

test('a paused one-off waits, and runs when it is resumed', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, delay: '10m' })
  await kit.jobs.pause(jobId)
  await kit.pass(HOUR)
  expect(seen).toEqual([])
  await kit.jobs.resume(jobId)
  await kit.settle()
  expect(seen).toMatchObject([{ nominalAt: at(10 * MINUTE), at: at(HOUR) }])
})

test('an update keeps nominal times that were due under the old schedule, and goes on with the new', async () => {
  const { kit, skipsOf } = await startKit()
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  kit.clock.advance(10 * MINUTE + 30 * SECOND)
  expect(await kit.jobs.update(jobId, { cron: '*/15 * * * *', payload: 2 })).toEqual({ version: 2 })
  const seen = await record(kit, 'reports')
  await kit.pass(20 * MINUTE)
  expect(seen.map(({ nominalAt, payload }) => [nominalAt, payload])).toEqual([
    [at(10 * MINUTE), 2],
    [at(15 * MINUTE), 2],
    [at(30 * MINUTE), 2],
  ])
  expect(await skipsOf(jobId)).toEqual([])
})

test('an update that leaves the time alone moves no nominal time', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ queue: 'reports', every: 'PT7M', payload: 1 })
  await kit.pass(10 * MINUTE)
  const before = (await kit.jobs.get(jobId))?.nextRunAt
  await kit.jobs.update(jobId, { payload: 2 })
  expect((await kit.jobs.get(jobId))?.nextRunAt).toEqual(before)
  await kit.pass(10 * MINUTE)
  expect(seen.at(-1)).toMatchObject({ payload: 2, nominalAt: before })
})

test('a one-off can be moved until it has become a run', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'emails')
  const { jobId } = await kit.jobs.create({ queue: 'emails', payload: 1, delay: '10m' })
  await kit.jobs.update(jobId, { delay: '20m' })
  await kit.pass(15 * MINUTE)
  expect(seen).toEqual([])
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(20))
  await expect(kit.jobs.update(jobId, { payload: 2 })).rejects.toMatchObject({ code: 'already_due' })
})

test('a trigger makes one run beside the schedule, which stays as it is', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  kit.clock.advance(3 * MINUTE)
  const { runId } = await kit.jobs.trigger(jobId)
  await kit.settle()
  expect(seen).toMatchObject([{ id: runId, nominalAt: at(3 * MINUTE) }])
  expect(await kit.runs.get(runId)).toMatchObject({ cause: 'trigger', status: 'succeeded' })
  await kit.pass(20 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(3, 10, 20))
})

test('two triggers at one instant are two runs, and neither takes a scheduled time', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, overlap: 'allow' })
  kit.clock.advance(10 * MINUTE)
  await kit.jobs.trigger(jobId)
  await kit.jobs.trigger(jobId)
  await kit.settle()
  expect(nominals(seen).sort((a, b) => a.getTime() - b.getTime())).toEqual([
    at(10 * MINUTE),
    at(10 * MINUTE + 1),
    at(10 * MINUTE + 2),
  ])
})

test('a trigger that meets a live run of an overlap-skip job is refused', async () => {
  const { kit } = await startKit()
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  await kit.jobs.trigger(jobId)
  await expect(kit.jobs.trigger(jobId)).rejects.toMatchObject({ code: 'overlap', status: 409 })
})

test('a job with maxRuns is completed after its last run', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, maxRuns: 2 })
  await kit.pass(HOUR)
  expect(nominals(seen)).toEqual(minutes(10, 20))
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'completed', nextRunAt: null })
  await expect(kit.jobs.trigger(jobId)).rejects.toMatchObject({ code: 'already_finished' })
})

test('a job with endAt is completed after its last time before it', async () => {
  const { kit } = await startKit()
  const seen = await record(kit, 'reports')
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, endAt: at(35 * MINUTE) })
  await kit.pass(HOUR)
  expect(nominals(seen)).toEqual(minutes(10, 20, 30))
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'completed' })
})
