import { expect, test } from 'vitest'
import type { JobInput } from '../../src/intake/job-input.ts'
import { SKIP_REASON } from '../../src/job/states.ts'
import { at, HOUR, MINUTE, record, SECOND, startKit } from './kit.ts'

const YEAR = 365 * 24 * HOUR
const EVERY_TEN = { every: 'PT10M', startAt: at(10 * MINUTE), queue: 'reports', payload: 1 } as const
const minutes = (...list: number[]): Date[] => list.map((minute) => at(minute * MINUTE))

/** A job that has been paused at minute 15 and is to be resumed at minute 65. */
async function paused(job: object) {
  const t = await startKit()
  const seen = await record(t.kit, 'reports')
  const { jobId } = await t.kit.jobs.create({ ...EVERY_TEN, ...job })
  await t.kit.pass(15 * MINUTE)
  await t.kit.jobs.pause(jobId)
  await t.kit.pass(50 * MINUTE)
  expect(seen.map(({ nominalAt }) => nominalAt)).toEqual(minutes(10))
  const ran = () => seen.slice(1).map(({ nominalAt }) => nominalAt)
  return { ...t, jobId, ran }
}

test('resumed as ever, a job goes on from now, and its pause is one skip', async () => {
  const t = await paused({ catchUp: { policy: 'all', window: '1d' }, overlap: 'allow' })
  expect(await t.kit.jobs.resume(t.jobId)).toEqual({ status: 'active' })
  await t.kit.pass(5 * MINUTE)
  expect(t.ran()).toEqual(minutes(70))
  expect(await t.skipsOf(t.jobId)).toEqual([
    { from: at(20 * MINUTE), to: at(65 * MINUTE + 1), reason: SKIP_REASON.paused, count: 5 },
  ])
})

test('a schedule that takes over after a pause is not covered by the skip of the pause', async () => {
  const t = await paused({ overlap: 'allow' })
  await t.kit.jobs.resume(t.jobId)
  await t.kit.jobs.update(t.jobId, { every: 'PT1M' })
  await t.kit.pass(2 * MINUTE)
  expect(t.ran()).toEqual(minutes(66, 67))
  expect((await t.skipsOf(t.jobId)).map(({ to }) => to)).toEqual([at(65 * MINUTE + 1)])
})

test('what fell into a pause is recorded when the job is canceled in it', async () => {
  const t = await paused({})
  await t.kit.jobs.cancel(t.jobId)
  expect(await t.skipsOf(t.jobId)).toEqual([
    { from: at(20 * MINUTE), to: at(65 * MINUTE + 1), reason: SKIP_REASON.paused, count: 5 },
  ])
})

test.each([
  ['latest', minutes(60), [[20 * MINUTE, 60 * MINUTE, 4]]],
  ['all', minutes(20, 30, 40, 50, 60), []],
  ['none', [], [[20 * MINUTE, 64 * MINUTE + 1, 5]]],
] as const)(
  'resumed with catch-up, what fell into the pause is decided by the policy %s',
  async (policy, ran, skipped) => {
    const t = await paused({ catchUp: { policy, window: '1d' }, overlap: 'allow' })
    expect(await t.kit.jobs.resume(t.jobId, { missed: 'catch_up' })).toEqual({ status: 'active' })
    await t.kit.settle()
    expect(t.ran()).toEqual(ran)
    const expected = skipped.map(([from, to, count]) => ({
      ...{ from: at(from), to: at(to) },
      ...{ reason: SKIP_REASON.catch_up_expired, count },
    }))
    expect(await t.skipsOf(t.jobId)).toEqual(expected)
    await t.kit.pass(5 * MINUTE)
    expect(t.ran()).toEqual([...ran, ...minutes(70)])
  },
)

test('resumed with catch-up, a job obeys its overlap policy', async () => {
  const t = await paused({ catchUp: { policy: 'all', window: '1d' }, overlap: 'buffer_latest', queue: 'reports' })
  await t.kit.jobs.resume(t.jobId, { missed: 'catch_up' })
  await t.kit.settle()
  expect(t.ran()).toEqual(minutes(20, 60))
})

test.each<[string, JobInput]>([
  ['jitter', { jitter: '5s', priority: 7 }],
  ['catch-up', { catchUp: { policy: 'all', window: '2d' } }],
  ['excluded days', { exclude: ['2026-12-25'] }],
])('a change of its %s that leaves the times of a pause as they are leaves a job what it missed', async (_, change) => {
  const t = await paused({ catchUp: { policy: 'all', window: '1d' }, overlap: 'allow' })
  await t.kit.jobs.update(t.jobId, change)
  expect(await t.skipsOf(t.jobId)).toEqual([])
  await t.kit.jobs.resume(t.jobId, { missed: 'catch_up' })
  await t.kit.settle()
  expect(t.ran()).toEqual(minutes(20, 30, 40, 50, 60))
})

test('resumed with catch-up after its last time, a job is completed and what it missed is run', async () => {
  const t = await paused({ endAt: at(60 * MINUTE), catchUp: { policy: 'latest', window: '1d' } })
  expect(await t.kit.jobs.resume(t.jobId, { missed: 'catch_up' })).toEqual({ status: 'completed' })
  await t.kit.settle()
  expect(t.ran()).toEqual(minutes(50))
  expect(await t.kit.jobs.get(t.jobId)).toMatchObject({ status: 'completed' })
})

test('how a job was resumed is written down, and what is no such word is refused', async () => {
  const t = await paused({})
  const tenant = await t.kit.tenant('default')
  await expect(tenant.jobs.resume(t.jobId, { missed: 'all' as never })).rejects.toMatchObject({
    ...{ code: 'invalid_argument', complaints: [{ path: 'missed' }] },
  })
  await tenant.jobs.resume(t.jobId, { missed: 'catch_up' })
  const { items } = await tenant.jobs.changes(t.jobId)
  expect(items.at(-1)).toMatchObject({ action: 'resume', after: { status: 'active', missed: 'catch_up' } })
})

test.each([
  ['every', 'PT1S', 'skip', 'latest'],
  ['every', 'PT1S', 'catch_up', 'latest'],
  ['every', 'PT1S', 'catch_up', 'all'],
  ['cron', '* * * * * *', 'skip', 'latest'],
  ['cron', '* * * * * *', 'catch_up', 'latest'],
  ['cron', '* * * * * *', 'catch_up', 'all'],
] as const)(
  'a job with %s %s that was paused for a year is resumed with %s and %s in bounded time, and leaves one row',
  async (kind, text, missed, policy) => {
    const t = await startKit()
    const catchUp = { policy, window: '1h', max: 10 }
    const { jobId } = await t.kit.jobs.create({ [kind]: text, queue: 'idle', payload: 1, overlap: 'allow', catchUp })
    await t.kit.jobs.pause(jobId)
    t.kit.clock.advance(YEAR)
    const begun = performance.now()
    await t.kit.jobs.resume(jobId, { missed })
    // Loose: it would be minutes if it walked the year.
    expect(performance.now() - begun).toBeLessThan(5 * SECOND)
    const skips = await t.query<{ days: number }>(
      `select extract(epoch from to_nominal - from_nominal)::float8 / 86400 as days from skips where job_id = $1`,
      [jobId],
    )
    expect(skips.map(({ days }) => Math.round(days))).toEqual([365])
  },
)
