import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { SKIP_REASON } from '../../src/job/states.ts'
import { at, HOUR, MINUTE, record, SECOND, startKit } from './kit.ts'

const DAY = 24 * HOUR
const EVERY_TEN = { cron: '*/10 * * * *', startAt: at(10 * MINUTE), queue: 'reports', payload: 1 } as const
const minutes = (...list: number[]): Date[] => list.map((minute) => at(minute * MINUTE))
const nominals = (seen: { nominalAt: Date }[]): Date[] => seen.map(({ nominalAt }) => nominalAt)

async function setup() {
  const t = await startKit()
  const seen = await record(t.kit, 'reports')
  const scheduleOf = async (jobId: string) => (await t.kit.jobs.get(jobId))?.schedule
  return { ...t, seen, scheduleOf }
}

test('maxRuns is a total: what was run before it was changed counts', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create({ ...EVERY_TEN, maxRuns: 3 })
  await kit.pass(25 * MINUTE)
  await kit.jobs.update(jobId, { maxRuns: 4 })
  await kit.pass(2 * HOUR)
  expect(nominals(seen)).toEqual(minutes(10, 20, 30, 40))
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'completed', times: [] })
})

test('maxRuns that comes later counts the runs that there were, and goes when it is taken away', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  await kit.pass(25 * MINUTE)
  await kit.jobs.trigger(jobId)
  await kit.settle()
  await kit.jobs.update(jobId, { maxRuns: 3 })
  expect((await kit.jobs.get(jobId))?.times).toHaveLength(1)
  await kit.jobs.update(jobId, { maxRuns: null } as never)
  await kit.pass(20 * MINUTE)
  await expect(kit.jobs.update(jobId, { maxRuns: 4 })).rejects.toMatchObject({
    code: 'invalid_job',
    complaints: [{ path: 'maxRuns', message: expect.stringContaining('more than the 4 runs') }],
  })
  await kit.jobs.update(jobId, { maxRuns: 5, cron: '*/30 * * * *' })
  await kit.pass(3 * HOUR)
  expect(nominals(seen)).toEqual(minutes(10, 20, 25, 30, 40, 60))
})

test('what fell into a pause is recorded when the schedule that it belongs to is replaced', async () => {
  const { kit, seen, skipsOf } = await setup()
  const { jobId } = await kit.jobs.create(EVERY_TEN)
  await kit.pass(15 * MINUTE)
  await kit.jobs.pause(jobId)
  kit.clock.advance(20 * MINUTE)
  await kit.jobs.update(jobId, { cron: '*/15 * * * *' })
  kit.clock.advance(20 * MINUTE)
  await kit.jobs.resume(jobId)
  await kit.pass(10 * MINUTE)
  expect(nominals(seen)).toEqual(minutes(10, 60))
  expect(await skipsOf(jobId)).toEqual([
    { from: at(20 * MINUTE), to: at(35 * MINUTE + 1), reason: SKIP_REASON.paused, count: 2 },
    { from: at(45 * MINUTE), to: at(55 * MINUTE + 1), reason: SKIP_REASON.paused, count: 1 },
  ])
})

test('leaving out days by an update loses no time that was due, and taking that back goes on as before', async () => {
  const { kit, seen, skipsOf, scheduleOf } = await setup()
  const { jobId } = await kit.jobs.create({ queue: 'reports', cron: '0 * * * *', overlap: 'allow' })
  await kit.pass(30 * MINUTE)
  kit.clock.advance(HOUR)
  await kit.jobs.update(jobId, { exclude: [{ cron: '* 2-3 * * *' }], onExcluded: 'skip' })
  await kit.pass(3 * HOUR)
  expect(await scheduleOf(jobId)).toEqual({
    ...{ cron: '0 * * * *', timezone: 'UTC', overlap: 'allow', exclude: [{ cron: '* 2-3 * * *' }] },
  })
  await kit.jobs.update(jobId, { exclude: null } as never)
  expect(await scheduleOf(jobId)).not.toHaveProperty('exclude')
  await kit.pass(HOUR)
  expect(nominals(seen)).toEqual([0, 1, 4, 5].map((hour) => at(hour * HOUR)))
  expect(await skipsOf(jobId)).toEqual([])
})

test('words go when another time replaces them, and stay, meaning the same, when something else changes', async () => {
  const { kit, scheduleOf } = await setup()
  const { jobId } = await kit.jobs.create({ queue: 'reports', when: 'every 90 minutes', overlap: 'allow' })
  await kit.pass(MINUTE)
  const before = await kit.jobs.get(jobId)
  expect(before?.schedule).toEqual({
    ...{ when: 'every 90 minutes', timezone: 'UTC', overlap: 'allow', startAt: before?.schedule?.startAt },
  })
  kit.clock.advance(10 * MINUTE)
  await kit.jobs.update(jobId, { priority: 7 })
  expect(await kit.jobs.get(jobId)).toMatchObject({ schedule: before?.schedule, nextRunAt: before?.nextRunAt })
  await kit.jobs.update(jobId, { exclude: ['2026-01-02'] })
  expect(await kit.jobs.get(jobId)).toMatchObject({
    schedule: { ...before?.schedule, exclude: ['2026-01-02'] },
    nextRunAt: before?.nextRunAt,
  })
  await kit.jobs.update(jobId, { cron: '0 9 * * *' })
  expect(await scheduleOf(jobId)).toEqual({
    ...{ cron: '0 9 * * *', timezone: 'UTC', overlap: 'allow', exclude: ['2026-01-02'] },
  })
  await kit.jobs.update(jobId, { when: 'every weekday at 9am', timezone: 'Europe/Berlin', exclude: null } as never)
  expect(await kit.jobs.get(jobId)).toMatchObject({
    schedule: { when: 'every weekday at 9am', timezone: 'Europe/Berlin', overlap: 'allow' },
    expression: '0 9 * * 1-5',
    timezone: 'Europe/Berlin',
  })
})

test('a bound that the words said is not said beside them', async () => {
  const { kit, scheduleOf } = await setup()
  const when = 'every day at 9am until 2026-02-01'
  const { jobId } = await kit.jobs.create({ queue: 'reports', when })
  expect(await scheduleOf(jobId)).toEqual({ when, timezone: 'UTC' })
  await kit.jobs.update(jobId, { payload: 2 })
  expect(await scheduleOf(jobId)).toEqual({ when, timezone: 'UTC' })
  await expect(kit.jobs.update(jobId, { endAt: at(40 * DAY) })).rejects.toMatchObject({
    complaints: [{ path: 'endAt', message: expect.stringContaining('the words of when') }],
  })
})

test('a one-off in words keeps its moment when something else changes', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create({ queue: 'reports', when: 'in 10 minutes', payload: 1 })
  kit.clock.advance(5 * MINUTE)
  await kit.jobs.update(jobId, { payload: 2 })
  expect(await kit.jobs.get(jobId)).toMatchObject({
    schedule: { when: 'in 10 minutes', timezone: 'UTC' },
    expression: '2026-01-01T00:10:00Z',
  })
  await kit.pass(10 * MINUTE)
  expect(seen).toMatchObject([{ nominalAt: at(10 * MINUTE), payload: 2 }])
  expect(await kit.jobs.get(jobId)).toMatchObject({ expression: '2026-01-01T00:10:00Z', times: [] })
})

test('what a job shows as its schedule makes the same schedule when it is sent again', async () => {
  const { kit } = await setup()
  const jobs: JobInput[] = [
    { cron: ['0 9 * * 1-5', '30 11 * * 6'], timezone: 'Europe/Berlin', startAt: at(DAY), endAt: at(90 * DAY) },
    { cron: '0 9 * * *', dst: { gap: 'skip', overlap: 'last' }, catchUp: { policy: 'all', window: '2h', max: 3 } },
    { every: 'R5/2026-02-01T00:00:00Z/PT15M', exclude: ['2026-03-01'] },
    { every: 'P1M', startAt: at(30 * DAY), maxRuns: 4, jitter: '10s', overlap: 'buffer_all' },
    { when: 'every weekday at 9am', exclude: ['2026-12-25'], onExcluded: 'next_business_day' },
    { when: 'every 90 minutes', maxRuns: 3 },
    {
      cron: '0 9 * * *',
      exclude: [
        { from: '2026-12-24', to: '2026-12-26' },
        { from: at(DAY), to: at(2 * DAY) },
      ],
    },
  ]
  for (const job of jobs) {
    const first = await kit.jobs.create({ queue: 'reports', ...job })
    const shown = await kit.jobs.get(first.jobId)
    const second = await kit.jobs.create({ queue: 'reports', ...shown?.schedule })
    const again = await kit.jobs.get(second.jobId)
    expect(again?.schedule, JSON.stringify(job)).toEqual(shown?.schedule)
    expect([again?.times, again?.understoodAs, again?.expression]).toEqual([
      ...[shown?.times, shown?.understoodAs, shown?.expression],
    ])
  }
})

test('a repeating interval fires so often and no more', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create({ queue: 'reports', every: 'R3/2026-01-01T00:10:00Z/PT10M' })
  expect((await kit.jobs.get(jobId))?.times.map(({ utc }) => utc)).toEqual([
    ...['2026-01-01T00:10:00Z', '2026-01-01T00:20:00Z', '2026-01-01T00:30:00Z'],
  ])
  await kit.pass(HOUR)
  expect(nominals(seen)).toEqual(minutes(10, 20, 30))
  expect(await kit.jobs.get(jobId)).toMatchObject({ status: 'completed', expression: expect.stringMatching(/^R3\//) })
})

test('a minute that comes from the job stays the same over an update, and is shown with its times', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create({ queue: 'reports', cron: 'H * * * *' })
  const before = await kit.jobs.get(jobId)
  expect(before).toMatchObject({ schedule: { cron: 'H * * * *' }, expression: 'H * * * *' })
  await kit.jobs.update(jobId, { priority: 3 })
  expect(await kit.jobs.get(jobId)).toMatchObject({ times: before?.times, nextRunAt: before?.nextRunAt })
  await kit.pass(HOUR + SECOND)
  expect(nominals(seen)[0]).toEqual(before?.nextRunAt)
  expect(before?.times[0]?.utc).toBe(before?.nextRunAt?.toISOString().replace('.000', ''))
})

test('every second of a job that is nearly a minute behind is decided before an update', async () => {
  const { kit, seen } = await setup()
  const { jobId } = await kit.jobs.create({ cron: '* * * * * *', overlap: 'allow', queue: 'reports', payload: 1 })
  await kit.pass(0)
  const before = seen.length
  kit.clock.advance(50 * SECOND)
  await kit.jobs.update(jobId, { cron: '0 0 * * *' })
  await kit.settle()
  expect(seen.length - before).toBe(50)
})
