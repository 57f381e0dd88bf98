import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit } from '../testing/index.ts'

const START = Date.UTC(2026, 0, 5, 8)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

async function setup(start = START) {
  const database = await createDatabase({ days: { around: start, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start, seed: 1 })
  onTestFinished(() => kit.stop())
  const { jobs, calendars } = await kit.tenant('default', 'bk_test')
  /** What history says of its attempts is for people to read, and nothing else. */
  const inOtherWords = () => database.query("update attempts set error = 'in other words'")
  return { kit, jobs, calendars, query: database.query, inOtherWords }
}

/** The longest time for which nobody else had a turn while something was done; of CPU time, which others cannot take away. */
async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let isOver = false
  let longest = 0
  const spentMs = () => process.cpuUsage().user / 1_000
  let last = spentMs()
  const look = () => {
    const now = spentMs()
    longest = Math.max(longest, now - last)
    last = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await work()
  isOver = true
  look()
  return longest
}

/** The first forty of every 41 days. */
const closedDay = (n: number): string => new Date(START + (n + Math.floor(n / 40)) * DAY).toISOString().slice(0, 10)

test('a range of a job with fifty thousand excluded days is explained without keeping others waiting', async () => {
  const t = await setup()
  const names = Array.from({ length: 10 }, (_, n) => `c${n}`)
  for (const name of names) await t.calendars.put(name, { days: [closedDay(0)] })
  const exclude = names.map((calendar) => ({ calendar }))
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 9-18 * * *', exclude })
  for (const [n, name] of names.entries()) {
    await t.calendars.put(name, { days: Array.from({ length: 5_000 }, (_, i) => closedDay(100 * n + i)) })
  }
  t.kit.clock.advance(1)
  const pages: number[] = []
  const range = { from: new Date(START + 1), to: new Date(START + 2_999 * DAY) }
  const seen: string[] = []
  let cursor: string | null = null
  const block = await longestBlock(async () => {
    do {
      const page = await t.jobs.explainRange(jobId, cursor === null ? range : { ...range, cursor })
      pages.push(page.items.length)
      seen.push(...page.items.map(({ local }) => local))
      cursor = page.nextCursor
    } while (cursor !== null)
  })
  // Of every 41 days one is left, and it has ten times.
  expect(seen).toHaveLength(Math.floor(2_999 / 41) * 10)
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen).toEqual([...seen].sort())
  expect(pages.length).toBeLessThan(20)
  const one = await longestBlock(() => t.jobs.explain(jobId, new Date(START + 10 * DAY + HOUR)))
  // Usually a tenth of it.
  expect(Math.max(block, one)).toBeLessThan(1_000)
})

test('a job whose schedule cannot be read any more is told by what is recorded, and why there is no more', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 9 * * *', timezone: 'Europe/Berlin' })
  await t.kit.pass(DAY)
  for (const cron of ['"0 9 30 2 *"', '5', '{}']) {
    await t.query(`update jobs set definition = jsonb_set(definition::jsonb, '{schedule,cron}', $1::jsonb)::json`, [
      cron,
    ])
    expect(await t.jobs.explain(jobId, '2026-01-06T08:00:00Z')).toMatchObject({ verdict: 'ran' })
    const coming = await t.jobs.explain(jobId, '2026-01-09T08:00:00Z')
    expect(coming).toMatchObject({ verdict: 'unknown', reason: 'schedule_unreadable', timezone: 'Europe/Berlin' })
    expect(coming.sentence).toContain('2026-01-09 09:00 Europe/Berlin, and the schedule of that time cannot be read: ')
    const { items } = await t.jobs.explainRange(jobId, { from: new Date(START), to: new Date(START + 9 * DAY) })
    expect(items).toMatchObject([{ verdict: 'ran' }, { verdict: 'ran' }])
  }
})

test('a time that waited behind a run was superseded by a later one, which is named', async () => {
  const t = await setup()
  let finish = () => {}
  await t.kit.handle('mail', () => new Promise<void>((done) => (finish = done)))
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 * * * *', overlap: 'buffer_latest' })
  for (let hour = 0; hour < 3; hour++) {
    await t.kit.settle({ running: 'leave' })
    t.kit.clock.advance(HOUR)
  }
  await t.inOtherWords()
  expect(await t.jobs.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({
    verdict: 'skipped',
    reason: 'superseded',
    sentence:
      '2026-01-05 09:00 UTC was skipped: another time took its place before it could start: 2026-01-05 10:00 UTC came meanwhile, and overlap is buffer_latest.',
  })
  finish()
})

test('a run that ended because of its parent or its key says so, whatever the words of its history are', async () => {
  const t = await setup()
  await t.kit.handle('well', () => {})
  await t.kit.handle('badly', () => {
    throw new Error('no')
  })
  const [well, badly] = await t.jobs.createMany(
    ['well', 'badly'].map((queue) => ({ queue, payload: 1, delay: '1s', retry: { maxAttempts: 1 } })),
  )
  const child = { queue: 'well', payload: 2 }
  const needless = await t.jobs.create({ ...child, after: { jobs: [well?.jobId ?? ''], on: 'failure' } })
  const broken = await t.jobs.create({ ...child, after: { jobs: [badly?.jobId ?? ''] } })
  await t.kit.pass(1_000)
  let finish = () => {}
  await t.kit.handle('slow', () => new Promise<void>((done) => (finish = done)))
  const keyed = { queue: 'slow', payload: 3, concurrency: { key: 'one', limit: 1, onLimit: 'skip' as const } }
  await t.jobs.create(keyed)
  await t.kit.settle({ running: 'leave' })
  const crowded = await t.jobs.create(keyed)
  await t.kit.settle({ running: 'leave' })
  await t.inOtherWords()
  const said = async ({ jobId }: { jobId: string }) => {
    const { reason, sentence } = await t.jobs.explain(jobId)
    return [reason, sentence.split(' was skipped: ')[1]]
  }
  expect(await said(needless)).toEqual(['dependency', 'in other words.'])
  expect(await said(broken)).toEqual(['canceled', 'it was in other words.'])
  expect(await said(crowded)).toEqual(['on_limit', 'in other words, and onLimit is skip.'])
  finish()
})

test('a run that its next time ended names that time', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 * * * *', overlap: 'cancel_running' })
  await t.kit.pass(HOUR)
  await t.inOtherWords()
  expect(await t.jobs.explain(jobId, '2026-01-05T08:00:00Z')).toMatchObject({
    reason: 'canceled',
    sentence:
      '2026-01-05 08:00 UTC was skipped: it was canceled before it started: 2026-01-05 09:00 UTC came meanwhile, and overlap is cancel_running.',
  })
  await t.query(`update attempts set number = 1, outcome = 3, leased_at = nominal_at where job_id = $1`, [jobId])
  expect((await t.jobs.explain(jobId, '2026-01-05T08:00:00Z')).sentence).toBe(
    'The run of 2026-01-05 08:00 UTC was canceled after one attempt: 2026-01-05 09:00 UTC came meanwhile, and overlap is cancel_running.',
  )
})

test('a day that a calendar excludes is told with the calendar and what the day is called, now and then', async () => {
  const t = await setup()
  const daily = { queue: 'mail', payload: 1, cron: '0 9 * * *' }
  await t.calendars.put('holidays', { days: ['2026-01-08', { date: '2026-01-07', name: 'Orthodox Christmas' }] })
  const { jobId } = await t.jobs.create({ ...daily, exclude: ['2026-12-25', { calendar: 'holidays' }] })
  const told = async (at: string) => (await t.jobs.explain(jobId, at)).sentence
  expect(await told('2026-01-07T09:00:00Z')).toMatch(
    /: the calendar holidays leaves out .*2026-01-07 \(Orthodox Christmas\)/,
  )
  expect(await told('2026-01-08T09:00:00Z')).toMatch(/: the calendar holidays leaves out 2026-01-08;/)
  expect(await told('2026-12-25T09:00:00Z')).toMatch(/: exclude\[0\] leaves out 2026-12-25/)
  t.kit.clock.advance(3 * DAY)
  await t.calendars.put('holidays', { days: [{ date: '2026-01-07', name: 'a day off' }] })
  expect(await told('2026-01-07T09:00:00Z')).toContain('(Orthodox Christmas)')
})

test('the end of time is told in years of four digits', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', payload: 1, cron: '0 9 * * *', timezone: 'Europe/Berlin' })
  const { sentence } = await t.jobs.explain(jobId, '9999-12-31T23:59:59Z')
  expect(sentence).toContain('Nothing runs at 9999-12-31 23:59:59 UTC: ')
})
