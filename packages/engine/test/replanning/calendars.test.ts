import pg from 'pg'
import { expect, test } from 'vitest'
import { SKIP_REASON } from '../../src/job/states.ts'
import type { ReplanJob } from '../../src/promotion/replan-job.ts'
import { at, DAY, HOUR, replan, replanTwice, SETTLE_MS, START, startNodes } from './setup.ts'

const DAILY = { queue: 'q', cron: '0 9 * * *', exclude: [{ calendar: 'holidays' }] }

async function setup() {
  const t = await startNodes()
  const put = (days: string[], more: object = {}, tenantId = 1, name = 'holidays') =>
    t.engine.calendars.put(tenantId, name, { days, ...more }, 'bk_planner')
  const stateOf = async (name = 'holidays') => {
    const [row] = await t.query<{ version: number; replanned: number }>(
      'select version, replanned from calendars where tenant_id = 1 and name = $1',
      [name],
    )
    return row
  }
  const nextOf = async (jobId: string) => (await t.timerOf(jobId))?.nominalAt
  return { ...t, put, stateOf, nextOf }
}

test('the next times of jobs follow a calendar that changes, and the change is listed', async () => {
  const t = await setup()
  await t.put(['2026-01-01'], { weekend: ['sat', 'sun'] })
  const skips = await t.create(DAILY)
  const rolls = await t.create({ ...DAILY, cron: '0 9 2 * *', onExcluded: 'next_business_day' })
  const apart = await t.create({ queue: 'q', cron: '0 9 * * *' })
  await replanTwice(t.node)
  expect([await t.nextOf(skips), await t.nextOf(rolls), await t.nextOf(apart)]).toEqual([at(2, 9), at(2, 9), at(1, 9)])

  await t.put(['2026-01-01', '2026-01-02'], { weekend: ['sat', 'sun'] })
  await replan(t.node)
  // The second of January is a Friday.
  expect([await t.nextOf(skips), await t.nextOf(rolls), await t.nextOf(apart)]).toEqual([at(5, 9), at(5, 9), at(1, 9)])
  for (const jobId of [skips, rolls]) {
    const replanned = (await t.changesOf(jobId)).slice(1)
    expect(replanned).toMatchObject([{ action: 'replan', actor: 'calendar holidays' }])
    expect(replanned[0]?.before).toEqual({ nextRunAt: '2026-01-02T09:00:00.000Z' })
    expect(replanned[0]?.after).toEqual({ nextRunAt: '2026-01-05T09:00:00.000Z' })
  }
  expect(await t.changesOf(apart)).toHaveLength(1)
  expect(await t.stateOf()).toEqual({ version: 2, replanned: 1 })
  t.clock.advance(SETTLE_MS)
  await replan(t.node)
  expect(await t.stateOf()).toEqual({ version: 2, replanned: 2 })
  expect(await t.changesOf(skips)).toHaveLength(2)
})

test('what was due before the change stays due, and nothing is due twice', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  const jobId = await t.create(DAILY)
  t.clock.advance(DAY + 9 * HOUR + 30_000)
  await t.put(['2026-01-01', '2026-01-02', '2026-01-03'])
  await replanTwice(t.node)
  expect(await t.runsOf(jobId)).toEqual([at(2, 9)])
  expect(await t.nextOf(jobId)).toEqual(at(4, 9))
  // The day is free again: its time has been decided, and does not come back.
  await t.put(['2026-01-01'])
  await replanTwice(t.node)
  expect(await t.nextOf(jobId)).toEqual(at(3, 9))
  expect(await t.runsOf(jobId)).toEqual([at(2, 9)])
})

test('a day of the past that is no longer free makes no run', async () => {
  const t = await setup()
  await t.put(['2026-01-01', '2026-01-02'])
  const jobId = await t.create(DAILY)
  t.clock.advance(DAY + 10 * HOUR)
  await t.put(['2026-01-01'])
  await replanTwice(t.node)
  expect(await t.nextOf(jobId)).toEqual(at(3, 9))
  expect(await t.runsOf(jobId)).toEqual([])
})

test('a node that dies between two pages leaves the rest to the next, and each job is moved once', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  await t.jobs.createMany(Array.from({ length: 150 }, () => DAILY))
  await replanTwice(t.node)
  await t.put(['2026-01-02'])
  await t.engine.pulse.runOnce()
  await t.engine.replanning.calendars.runOnce()
  const moved = async () =>
    (await t.query<{ n: number }>(`select count(*)::int as n from job_changes where action = 'replan'`))[0]?.n
  expect(await moved()).toBe(100)

  await t.engine.pulse.leave()
  const second = await t.startNode({ start: t.clock.now() })
  await second.engine.pulse.runOnce()
  await replanTwice(second)
  expect(await moved()).toBe(150)
  const next = await t.query<{ nominal_at: Date }>('select distinct nominal_at from timers')
  expect(next).toEqual([{ nominal_at: at(1, 9) }])
  expect(await t.stateOf()).toEqual({ version: 2, replanned: 2 })
})

test('a job that is being created by the old days is found when its transaction has ended', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  await replanTwice(t.node)
  const caller = new pg.Client(t.connection)
  await caller.connect()
  try {
    await caller.query('begin')
    const { jobId } = await t.jobs.create(DAILY, { tx: caller })
    await t.put(['2026-01-02'])
    await replanTwice(t.node)
    t.clock.advance(60_000)
    await replan(t.node)
    // It is not known yet, so nobody may say that all is done.
    expect(await t.stateOf()).toEqual({ version: 2, replanned: 1 })
    await caller.query('commit')
    expect(await t.nextOf(jobId)).toEqual(at(2, 9))
    await replan(t.node)
    expect(await t.nextOf(jobId)).toEqual(at(1, 9))
    expect(await t.stateOf()).toEqual({ version: 2, replanned: 2 })
  } finally {
    await caller.end()
  }
})

test('a paused job gets its new time and stays paused', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  const jobId = await t.create(DAILY)
  await t.engine.jobChanges.pause(jobId, 'for now', 'bk_a')
  await t.put(['2026-01-01', '2026-01-02'])
  await replanTwice(t.node)
  expect(await t.timerOf(jobId)).toEqual({ nominalAt: at(3, 9), dueAt: Number.POSITIVE_INFINITY })
  expect((await t.changesOf(jobId)).map(({ action }) => action)).toEqual(['create', 'pause', 'replan'])
  await t.engine.jobChanges.resume(jobId, 'bk_a')
  expect(await t.timerOf(jobId)).toEqual({ nominalAt: at(3, 9), dueAt: at(3, 9) })
})

/** Times of January that the job has, of a pause from the first until the fifth at ten. */
async function pausedUntilTheFifth(days: string[], more: object = {}) {
  const t = await setup()
  await t.put(days)
  const jobId = await t.create({ ...DAILY, overlap: 'allow', catchUp: { policy: 'all', window: '30d' }, ...more })
  await t.engine.jobChanges.pause(jobId, null, 'bk_a')
  t.clock.advance(4 * DAY + 10 * HOUR)
  const skips = () =>
    t.query('select from_nominal as from, to_nominal as to, count, reason from skips where job_id = $1', [jobId])
  return { ...t, jobId, skips }
}

const justAfter = (time: Date): Date => new Date(time.getTime() + 1)

test('a time of a pause that the calendar takes away is skipped with those before it, and those after it wait', async () => {
  const t = await pausedUntilTheFifth(['2026-01-01'])
  await t.put(['2026-01-01', '2026-01-03'])
  await replanTwice(t.node)
  expect(await t.timerOf(t.jobId)).toEqual({ nominalAt: at(4, 9), dueAt: Number.POSITIVE_INFINITY })
  expect(await t.skips()).toEqual([{ from: at(2, 9), to: justAfter(at(3, 9)), count: 2, reason: SKIP_REASON.paused }])
  await t.engine.jobChanges.resume(t.jobId, 'bk_a', 'catch_up')
  expect(await t.runsOf(t.jobId)).toEqual([at(4, 9), at(5, 9)])
  expect(await t.skips()).toHaveLength(1)
})

test('a time that the calendar gives back in a pause makes no run, and nothing before it is forgotten', async () => {
  const t = await pausedUntilTheFifth(['2026-01-01', '2026-01-03'])
  await t.put(['2026-01-01'])
  await replanTwice(t.node)
  await t.engine.jobChanges.resume(t.jobId, 'bk_a', 'catch_up')
  expect(await t.runsOf(t.jobId)).toEqual([at(4, 9), at(5, 9)])
  expect(await t.skips()).toEqual([{ from: at(2, 9), to: justAfter(at(3, 9)), count: 1, reason: SKIP_REASON.paused }])
})

test('a calendar that changes elsewhere leaves what fell into a pause to whoever resumes the job', async () => {
  const t = await pausedUntilTheFifth(['2026-01-01'])
  await t.put(['2026-01-01', '2026-12-25'])
  await replanTwice(t.node)
  expect(await t.skips()).toEqual([])
  await t.engine.jobChanges.resume(t.jobId, 'bk_a', 'catch_up')
  expect(await t.runsOf(t.jobId)).toEqual([2, 3, 4, 5].map((day) => at(day, 9)))
})

test.each(['skip', 'catch_up'] as const)(
  'a paused job that its calendar leaves no time is completed when it is resumed with %s, and nothing is made up',
  async (missed) => {
    const t = await pausedUntilTheFifth(['2026-01-01'], { endAt: '2026-01-08T00:00:00Z' })
    await t.put(['2026-01-01', '2026-01-02', '2026-01-03', '2026-01-04', '2026-01-05', '2026-01-06', '2026-01-07'])
    await t.engine.replanning.job.byCalendar(t.jobId, 'holidays')
    expect(await t.engine.jobChanges.resume(t.jobId, 'bk_a', missed)).toEqual({ status: 'completed' })
    expect(await t.runsOf(t.jobId)).toEqual([])
    expect(await t.skips()).toEqual([{ from: at(2, 9), to: justAfter(at(5, 9)), count: 4, reason: SKIP_REASON.paused }])
  },
)

test('a calendar that leaves a job no time pauses it, with the reason; mended, it can go on', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  const jobId = await t.create({ ...DAILY, endAt: '2026-01-04T00:00:00Z' })
  await t.put(['2026-01-01', '2026-01-02', '2026-01-03'])
  await replanTwice(t.node)
  const [job] = await t.query('select status, pause_reason from jobs where id = $1', [jobId])
  expect(job).toEqual({ status: 1, pause_reason: 'calendar holidays leaves it no time to run' })
  expect((await t.changesOf(jobId)).at(-1)).toMatchObject({ action: 'replan', after: { nextRunAt: null } })
  await t.put(['2026-01-01', '2026-01-02'])
  await replanTwice(t.node)
  await t.engine.jobChanges.resume(jobId, 'bk_a')
  expect(await t.timerOf(jobId)).toEqual({ nominalAt: at(3, 9), dueAt: at(3, 9) })
  expect(await t.runsOf(jobId)).toEqual([])
})

test('two nodes that plan the same job at once move it once', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  const jobId = await t.create(DAILY)
  await t.put(['2026-01-01', '2026-01-02'])
  const other = await t.startNode()
  const replans = [t.node, other].map(({ engine }) => engine.replanning.job)
  const outcomes = await Promise.all(replans.map((one: ReplanJob) => one.byCalendar(jobId, 'holidays')))
  expect(outcomes.sort()).toEqual(['moved', 'same'])
  expect(await t.changesOf(jobId)).toHaveLength(2)
})

test('all that was due is decided, in several transactions if need be, before the job follows its calendar', async () => {
  const t = await setup()
  await t.put(['2026-01-02'])
  const jobId = await t.create({ ...DAILY, cron: '* * * * * *', overlap: 'allow' })
  t.clock.advance(50_000)
  await t.put(['2026-01-01', '2026-01-02'])
  await replanTwice(t.node)
  expect(await t.runsOf(jobId)).toHaveLength(51)
  expect(await t.nextOf(jobId)).toEqual(at(3, 0))
})

test("another tenant's jobs that name a calendar of the same name are left alone", async () => {
  const t = await setup()
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  await t.put(['2026-01-01'])
  await t.put(['2026-01-01'], {}, 2)
  const theirs = await t.create({ ...DAILY, tenant: 'other' })
  await t.put(['2026-01-02'])
  await replanTwice(t.node)
  expect(await t.nextOf(theirs)).toEqual(at(2, 9))
  expect(await t.changesOf(theirs, 2)).toHaveLength(1)
})

test('only another set of days makes jobs be planned anew', async () => {
  const t = await setup()
  expect(await t.put(['2026-01-01'])).toBe('created')
  await replanTwice(t.node)
  expect(await t.put(['2026-01-01'])).toBe('same')
  const named = { days: [{ date: '2026-01-01', name: 'New Year' }] }
  expect(await t.engine.calendars.put(1, 'holidays', named, 'bk_a')).toBe('updated')
  expect(await t.stateOf()).toEqual({ version: 1, replanned: 1 })
})

test('a calendar goes only when no active or paused job names it, and its changes are written down', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  const first = await t.create(DAILY)
  const second = await t.create(DAILY)
  await t.engine.jobChanges.pause(second, null, 'bk_a')
  const refused = t.engine.calendars.delete(1, 'holidays', 'bk_a')
  await expect(refused).rejects.toMatchObject({
    code: 'calendar_in_use',
    message: expect.stringContaining('(2)'),
  })
  await t.engine.jobChanges.cancel(first, 'cancel', 'bk_a')
  await t.engine.jobChanges.cancel(second, 'cancel', 'bk_a')
  expect(await t.engine.calendars.delete(1, 'holidays', 'bk_a')).toBe(true)
  expect(await t.engine.calendars.delete(1, 'holidays', 'bk_a')).toBe(false)
  const changes = await t.query<{ action: string; actor: string }>(
    'select action, actor from job_changes where subject = 7',
  )
  expect(changes).toEqual([
    { action: 'create', actor: 'bk_planner' },
    { action: 'delete', actor: 'bk_a' },
  ])
  await expect(t.create(DAILY)).rejects.toMatchObject({ message: expect.stringContaining('there is no calendar') })
})

test('a job that outlived its calendar follows the next one of that name', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  expect(await t.stateOf(), 'nobody names a calendar before it is there').toEqual({ version: 1, replanned: 1 })
  const jobId = await t.create(DAILY)
  await t.query('delete from calendars')
  await t.put(['2026-01-02'])
  expect(await t.stateOf()).toEqual({ version: 1, replanned: 0 })
  await replanTwice(t.node)
  expect(await t.nextOf(jobId)).toEqual(at(1, 9))
})

test('a job whose other calendar is gone keeps its days, and does not hold up the others', async () => {
  const t = await setup()
  await t.put(['2026-01-01'])
  await t.put(['2026-01-01'], {}, 1, 'strikes')
  const odd = await t.create({ ...DAILY, exclude: [{ calendar: 'holidays' }, { calendar: 'strikes' }] })
  const plain = await t.create(DAILY)
  await t.query(`delete from calendars where name = 'strikes'`)
  await t.put(['2026-01-01', '2026-01-02'])
  await replanTwice(t.node)
  expect([await t.nextOf(odd), await t.nextOf(plain)]).toEqual([at(2, 9), at(3, 9)])
  expect(await t.stateOf()).toEqual({ version: 2, replanned: 2 })
})

test('a calendar whose name has only dots, which no address can hold, is refused', async () => {
  const t = await setup()
  for (const name of ['.', '..', '...']) {
    await expect(t.put(['2026-01-01'], {}, 1, name)).rejects.toMatchObject({
      code: 'invalid_argument',
      complaints: [{ path: 'name', message: 'must have more than dots' }],
    })
    expect(await t.stateOf(name)).toBeUndefined()
  }
  await t.put(['2026-01-01'], {}, 1, '.de')
  expect(await t.stateOf('.de')).toMatchObject({ version: 1 })
})

test('a calendar that leaves a job no schedule pauses it with the reason, and it does not run on the new days', async () => {
  const t = await setup()
  await t.put([])
  const jobId = await t.create({ ...DAILY, onExcluded: 'next_business_day' })
  const days = Array.from({ length: 400 }, (_, i) => new Date(START + i * DAY).toISOString().slice(0, 10))
  await t.put(days)
  await replanTwice(t.node)
  const [job] = await t.query<{ status: number; pause_reason: string }>('select status, pause_reason from jobs')
  expect(job).toMatchObject({ status: 1, pause_reason: expect.stringMatching(/^calendar holidays leaves it no /) })
  expect((await t.timerOf(jobId))?.dueAt).toBe(Number.POSITIVE_INFINITY)

  await t.put(['2026-01-01'])
  await replanTwice(t.node)
  await t.jobs.resume(jobId)
  expect(await t.nextOf(jobId)).toEqual(at(2, 9))
})
