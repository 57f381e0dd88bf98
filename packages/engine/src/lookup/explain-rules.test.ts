import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { runIdOf } from '../job/ids.ts'
import { startTestKit } from '../testing/index.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

async function setup(start: string) {
  const at = Date.parse(start)
  const database = await createDatabase({ days: { around: at, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: at, seed: 1 })
  onTestFinished(() => kit.stop())
  await kit.handle('mail', () => {})
  const tenant = await kit.tenant('default', 'bk_test')
  const reasonAt = async (jobId: string, at: string) => {
    const { verdict, reason } = await tenant.jobs.explain(jobId, at)
    return [verdict, reason]
  }
  return { kit, ...tenant, reasonAt, query: database.query }
}

test('on the night that skips an hour, a fixed time runs right after it, and is left out where the job says so', async () => {
  const t = await setup('2026-03-27T12:00:00Z')
  const nightly = { queue: 'mail', payload: 1, cron: '30 2 * * *', timezone: 'Europe/Berlin' }
  const usual = await t.jobs.create(nightly)
  const without = await t.jobs.create({ ...nightly, dst: { gap: 'skip' } })
  await t.kit.pass(3 * DAY)
  // 02:30 does not exist: by the clock before the change it would be 01:30 UTC.
  expect(await t.jobs.explain(usual.jobId, '2026-03-29T01:00:00Z')).toMatchObject({
    verdict: 'ran',
    local: '2026-03-29T03:00:00+02:00',
    timezone: 'Europe/Berlin',
  })
  const gap = await t.jobs.explain(without.jobId, '2026-03-29T02:30:00+01:00')
  expect(gap).toMatchObject({ verdict: 'never', reason: 'dst' })
  expect(gap.sentence).toContain('Europe/Berlin')
  expect(await t.reasonAt(without.jobId, '2026-03-28T01:30:00Z')).toEqual(['ran', null])
  expect(await t.reasonAt(without.jobId, '2026-03-30T00:30:00Z')).toEqual(['ran', null])
})

test('days that are excluded are the rule, also by a calendar, with the days that it held then', async () => {
  const t = await setup('2026-12-22T12:00:00Z')
  await t.calendars.put('holidays', { days: [{ date: '2026-12-25' }] })
  const daily = { queue: 'mail', payload: 1, cron: '0 9 * * *' }
  const fixed = await t.jobs.create({ ...daily, exclude: ['2026-12-24'] })
  const named = await t.jobs.create({ ...daily, exclude: [{ calendar: 'holidays' }] })
  await t.kit.pass(4 * DAY)
  await t.calendars.put('holidays', { days: [{ date: '2026-12-31' }] })
  await t.kit.pass(DAY)
  expect(await t.reasonAt(fixed.jobId, '2026-12-24T09:00:00Z')).toEqual(['never', 'exclude'])
  expect(await t.reasonAt(fixed.jobId, '2026-12-25T09:00:00Z')).toEqual(['ran', null])
  expect(await t.reasonAt(named.jobId, '2026-12-25T09:00:00Z')).toEqual(['never', 'exclude'])
  expect(await t.reasonAt(named.jobId, '2026-12-26T09:00:00Z')).toEqual(['ran', null])
  expect(await t.reasonAt(named.jobId, '2026-12-31T09:00:00Z')).toEqual(['never', 'exclude'])
  expect(await t.reasonAt(named.jobId, '2027-12-25T09:00:00Z')).toEqual(['will_run', null])
})

test('startAt, endAt and a count are the rules that they are', async () => {
  const t = await setup('2026-01-05T08:30:00Z')
  const bounded = await t.jobs.create({
    queue: 'mail',
    payload: 1,
    cron: '0 * * * *',
    startAt: '2026-01-05T10:00:00Z',
    endAt: '2026-01-05T12:00:00Z',
  })
  const five = await t.jobs.create({ queue: 'mail', payload: 1, every: 'R3/2026-01-05T09:00:00Z/PT1H' })
  const check = async () => {
    expect(await t.reasonAt(bounded.jobId, '2026-01-05T09:00:00Z')).toEqual(['never', 'start_at'])
    expect(await t.reasonAt(bounded.jobId, '2026-01-05T12:00:00Z')).toEqual(['never', 'end_at'])
    expect(await t.reasonAt(five.jobId, '2026-01-05T12:00:00Z')).toEqual(['never', 'count'])
  }
  await check()
  await t.kit.pass(6 * HOUR)
  await check()
  expect(await t.reasonAt(bounded.jobId, '2026-01-05T11:00:00Z')).toEqual(['ran', null])
  expect(await t.reasonAt(five.jobId, '2026-01-05T11:00:00Z')).toEqual(['ran', null])
})

test('a run that waits for another of its job names it', async () => {
  const t = await setup('2026-01-05T08:00:00Z')
  const first = Date.parse('2026-01-05T08:00:00Z')
  const hourly = { queue: 'idle', payload: 1, cron: '0 * * * *', overlap: 'buffer_one' }
  const { jobId } = await t.jobs.create(hourly)
  await t.kit.pass(HOUR)
  expect(await t.jobs.explain(jobId, '2026-01-05T09:00:00Z')).toMatchObject({
    verdict: 'waiting',
    reason: 'blocked',
    waits: { behind: runIdOf(jobId, first) },
    sentence: `The run of 2026-01-05 09:00 UTC waits until the run ${runIdOf(jobId, first)} has ended.`,
  })
})

test('a run whose target is behind an open circuit says since what and until when', async () => {
  const t = await setup('2026-01-05T08:00:00Z')
  const { jobId } = await t.jobs.create({ http: { url: 'https://shop.example/hook' } })
  await t.query(
    `insert into circuits (tenant_id, origin, opened_at, probe_at, open_ms, failures, probing, reason)
     values (1, 'https://shop.example', '2026-01-05T07:59:00Z', '2026-01-05T08:01:00Z', 60000, 20, false, 'http_5xx')`,
  )
  const { waits } = await t.jobs.explain(jobId, '2026-01-05T08:00:00Z')
  expect(waits).toMatchObject({
    circuit: { origin: 'https://shop.example', until: new Date('2026-01-05T08:01:00Z'), reason: 'http_5xx' },
  })
})
