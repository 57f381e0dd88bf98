import { expect, test } from 'vitest'
import { HOUR, MINUTE } from '../behaviour/kit.ts'
import { refusalOf, startTenants } from './setup.ts'

const HOLIDAYS = { days: [{ date: '2026-01-02' }], weekend: [] }

test('a create and the job itself say what was understood, and when it runs next', async () => {
  const { own } = await startTenants()
  const created = await own.jobs.create({ queue: 'q', when: 'every weekday at 9am', timezone: 'Europe/Berlin' })
  const { understoodAs, expression, timezone, times, nextRunAt } = created
  expect(understoodAs).toContain('09:00')
  expect([expression, timezone]).toEqual(['0 9 * * 1-5', 'Europe/Berlin'])
  expect(times).toHaveLength(5)
  expect(times[0]).toEqual({ utc: '2026-01-01T08:00:00Z', local: '2026-01-01T09:00:00+01:00' })
  expect(nextRunAt).toEqual(new Date('2026-01-01T08:00:00Z'))
  expect(await own.jobs.get(created.jobId)).toMatchObject({ understoodAs, expression, timezone, times })
  expect(await own.jobs.create({ queue: 'q' })).toMatchObject({
    ...{ understoodAs: 'now', expression: null, timezone: 'UTC', times: [] },
  })
  for (const job of (await own.jobs.list({})).items) expect(job).not.toHaveProperty('understoodAs')
  const [many] = await own.jobs.createMany([{ queue: 'q', cron: '@daily' }])
  expect(many).not.toHaveProperty('understoodAs')
})

test('a repeated create in words answers the job that the first one made, whatever the words mean now', async () => {
  const { kit, own } = await startTenants()
  const job = { queue: 'q', when: 'in 10 minutes', idempotencyKey: 'k' }
  const first = await own.jobs.create(job)
  kit.clock.advance(3 * MINUTE)
  expect(await own.jobs.create(job)).toEqual({ ...first, deduplicated: true })
  expect((await refusalOf(own.jobs.create({ ...job, when: 'in 11 minutes' }))).code).toBe('idempotency_mismatch')
})

test('saying a job again in the same words changes nothing', async () => {
  const { kit, own } = await startTenants()
  for (const when of ['every weekday at 9am', 'every 90 minutes', 'every day at 9am until 2026-02-01']) {
    const first = await own.jobs.upsert(when, { queue: 'q', when })
    kit.clock.advance(7 * MINUTE)
    expect(await own.jobs.upsert(when, { queue: 'q', when })).toEqual({ ...first, created: false })
    expect(await own.jobs.upsert(when, { queue: 'q', when, priority: 7 })).toMatchObject({ version: 2 })
  }
  const every = 'R5/2026-02-01T00:00:00Z/PT15M'
  const first = await own.jobs.upsert('r', { queue: 'q', every })
  expect(await own.jobs.upsert('r', { queue: 'q', every })).toEqual({ ...first, created: false })
})

test("a job goes by its tenant's calendars, and is refused without them", async () => {
  const { own, other, kit } = await startTenants()
  const job = { queue: 'q', cron: '0 9 * * *', exclude: [{ calendar: 'holidays' }] }
  expect((await refusalOf(own.jobs.create(job))).message).toBe('exclude[0].calendar: there is no calendar "holidays"')
  await own.calendars.put('holidays', HOLIDAYS)
  kit.clock.advance(12 * HOUR)
  const { jobId, times } = await own.jobs.create(job)
  expect(times[0]?.utc).toBe('2026-01-03T09:00:00Z')
  expect(await own.jobs.get(jobId)).toMatchObject({ times, schedule: { exclude: [{ calendar: 'holidays' }] } })
  expect((await refusalOf(other.jobs.create(job))).code).toBe('invalid_job')
  expect((await refusalOf(other.jobs.preview({ cron: '@daily', exclude: job.exclude }))).code).toBe('invalid_job')
  const refused = await own.jobs
    .createMany([
      { queue: 'new', cron: '@daily' },
      { ...job, exclude: [{ calendar: 'nope' }] },
    ])
    .catch((error: { complaints: unknown }) => error)
  expect(refused).toMatchObject({ complaints: [{ path: '[1].exclude[0].calendar' }] })
  expect((await own.queues.list()).items.map(({ name }) => name)).not.toContain('new')
  const all = { ...job, exclude: [{ calendar: 'holidays' }], endAt: '2026-01-02T12:00:00Z' }
  expect((await refusalOf(own.jobs.create(all))).message).toMatch(/^exclude: leaves out every time/)
})

test('a preview shows what a create would make, for any moment and as often as asked', async () => {
  const { own } = await startTenants()
  const cron = { cron: '30 2 * * *', timezone: 'Europe/Berlin' }
  expect(await own.jobs.preview({ ...cron, from: '2026-03-28T12:00:00Z', count: 2 })).toEqual({
    understoodAs: expect.stringContaining('02:30'),
    expression: '30 2 * * *',
    timezone: 'Europe/Berlin',
    times: [
      { utc: '2026-03-29T01:00:00Z', local: '2026-03-29T03:00:00+02:00', dst: 'gap' },
      { utc: '2026-03-30T00:30:00Z', local: '2026-03-30T02:30:00+02:00' },
    ],
  })
  const at = '2026-03-30T00:30:00Z'
  expect((await own.jobs.preview({ ...cron, from: at, count: 1 })).times[0]?.utc).toBe('2026-03-31T00:30:00Z')
  expect((await own.jobs.preview({ ...cron, count: 1_000 })).times).toHaveLength(1_000)
  expect((await own.jobs.preview({ every: 'R3/PT1H', count: 10 })).times).toHaveLength(3)
  expect((await own.jobs.preview({ every: '1h', maxRuns: 2 })).times).toHaveLength(2)
  expect(await own.jobs.preview({ when: 'in 10 minutes', from: at })).toMatchObject({
    times: [{ utc: '2026-03-30T00:40:00Z' }],
  })
  expect(await own.jobs.preview({})).toMatchObject({ expression: null, times: [] })
})

test('a preview of a minute that comes from the job says so, and shows it for the job that it is given', async () => {
  const { own } = await startTenants()
  const made = await own.jobs.preview({ cron: 'H * * * *' })
  expect(made).toMatchObject({ expression: 'H * * * *', note: expect.stringContaining('made-up') })
  const { jobId, times } = await own.jobs.create({ queue: 'q', cron: 'H * * * *' })
  const preview = await own.jobs.preview({ cron: 'H * * * *', jobId })
  expect(preview).not.toHaveProperty('note')
  expect(preview.times.map(({ utc }) => utc)).toEqual(expect.arrayContaining(times.slice(0, 4).map(({ utc }) => utc)))
})

test.each<[input: unknown, path: string]>([
  [{ cron: '@daily', count: 0 }, 'count'],
  [{ cron: '@daily', count: 1_001 }, 'count'],
  [{ cron: '@daily', from: 'soon' }, 'from'],
  [{ cron: '@daily', jobId: 'x' }, 'jobId'],
  [{ cron: '@daily', queue: 'q' }, 'queue'],
  [{ crn: '@daily' }, 'crn'],
  [{ cron: '61 * * * *' }, 'cron'],
  [{ cron: '@daily', exclude: [{ cron: '* * * * *' }] }, 'exclude'],
  [[], ''],
])('a preview of %j is refused at "%s"', async (input, path) => {
  const { own } = await startTenants()
  await expect(own.jobs.preview(input)).rejects.toMatchObject({ code: 'invalid_job', complaints: [{ path }] })
})
