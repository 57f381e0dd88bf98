import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit } from '../testing/index.ts'

const START = Date.UTC(2026, 0, 5, 8)
const MINUTE = 60_000
const HOUR = 60 * MINUTE

async function setup() {
  const database = await createDatabase({ days: { around: START, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start: START, seed: 1 })
  onTestFinished(() => kit.stop())
  const { jobs, forecast } = await kit.tenant('default', 'bk_test')
  /** Of the coming hours, the minutes in which something is expected. */
  const coming = async (hours: number) => {
    const { perMinute } = await forecast.get({ to: new Date(START + hours * HOUR) })
    return perMinute.flatMap((runs, minute) => (runs === 0 ? [] : [[minute, runs]]))
  }
  return { kit, jobs, forecast, coming, query: database.query }
}

test('each schedule counts once for every job that has it, and a one-off in its minute', async () => {
  const t = await setup()
  await t.jobs.createMany(Array(3).fill({ queue: 'mail', cron: '30 * * * *', payload: 1 }))
  await t.jobs.create({ queue: 'mail', cron: '*/20 * * * * *', payload: 1, endAt: new Date(START + 2 * MINUTE) })
  await t.jobs.create({ queue: 'mail', delay: '45m', payload: 1 })
  expect(await t.coming(2)).toEqual([
    [0, 3],
    [1, 3],
    [30, 3],
    [45, 1],
    [90, 3],
  ])
})

test('jitter moves runs to the minute that they are due in, and maxRuns ends them', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', cron: '0 * * * *', payload: 1, jitter: '50m', maxRuns: 2 })
  const { dueAt } = await t.jobs.explain(jobId, '2026-01-05T08:00:00Z')
  const minute = Math.floor(((dueAt?.getTime() ?? 0) - START) / MINUTE)
  expect(minute).toBeGreaterThan(0)
  expect(await t.coming(5)).toEqual([
    [minute, 1],
    [minute + 60, 1],
  ])
  expect((await t.forecast.get()).busiest[0]).toMatchObject({ runs: 1, withoutJitter: 0 })
})

test('paused jobs are not expected, and a tenant is not shown those of others', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ queue: 'mail', cron: '30 * * * *', payload: 1 })
  await t.jobs.pause(jobId)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  const other = await t.kit.tenant('other')
  await other.jobs.create({ http: { url: 'http://Crm.example/a?b' }, cron: '0 12 * * *' })
  await other.jobs.create({ http: { url: 'http://crm.example:80/b' }, delay: '1h' })
  expect(await t.forecast.get()).toMatchObject({ timers: 0, total: 0, busiest: [], queues: [], origins: [] })
  expect(await other.forecast.get()).toMatchObject({
    timers: 2,
    total: 2,
    isComplete: true,
    areOriginsComplete: true,
    queues: [{ name: 'http', total: 2 }],
    origins: [{ name: 'http://crm.example', total: 2 }],
  })
})

test('timers are looked at once a minute, however often and for whatever range somebody asks', async () => {
  const t = await setup()
  await t.jobs.create({ queue: 'mail', cron: '30 * * * *', payload: 1 })
  expect(await t.forecast.get()).toMatchObject({ total: 24, asOf: new Date(START) })
  await t.jobs.create({ queue: 'mail', cron: '30 * * * *', payload: 1 })
  t.kit.clock.advance(59_000)
  expect(await t.forecast.get({ to: new Date(START + 2 * HOUR) })).toMatchObject({ total: 2, asOf: new Date(START) })
  t.kit.clock.advance(1_000)
  expect(await t.forecast.get()).toMatchObject({ total: 48, asOf: new Date(START + MINUTE) })
})

test('a week is the most that can be asked for', async () => {
  const t = await setup()
  const inDays = (days: number) => new Date(START + days * 24 * HOUR)
  expect((await t.forecast.get({ to: inDays(7) })).perMinute).toHaveLength(7 * 24 * 60)
  await expect(t.forecast.get({ to: inDays(7.001) })).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(t.forecast.get({ from: inDays(8) })).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(t.forecast.get({ from: inDays(2), to: inDays(1) })).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(t.forecast.get({ to: inDays(-1) })).rejects.toMatchObject({ code: 'invalid_argument' })
})

test('a job that begins in a crowded second is made, with a hint; one with jitter, alone or at once is not', async () => {
  const t = await setup()
  const noon = { queue: 'mail', cron: '0 12 * * *', payload: 1 }
  expect(await t.jobs.create(noon)).not.toHaveProperty('hints')
  await t.jobs.createMany(Array(998).fill(noon))
  expect(await t.jobs.create(noon)).toMatchObject({
    jobId: expect.any(String),
    hints: [
      {
        code: 'crowded_second',
        message: expect.stringContaining('2026-01-05T12:00:00Z'),
        suggestion: { jitter: 'PT30S' },
      },
    ],
  })
  const { hints } = await t.jobs.create({ queue: 'mail', runAt: '2026-01-05T12:00:00.500Z', payload: 1 })
  const runAt = Date.parse(hints?.[0]?.suggestion.runAt ?? '')
  expect(runAt).toBeGreaterThan(START + 4 * HOUR)
  expect(runAt).toBeLessThan(START + 4 * HOUR + MINUTE)
  expect(await t.jobs.create({ ...noon, jitter: '1m' })).not.toHaveProperty('hints')
  expect(await t.jobs.create({ ...noon, cron: '1 12 * * *' })).not.toHaveProperty('hints')
  expect(await t.jobs.create({ queue: 'mail', payload: 1 })).not.toHaveProperty('hints')
})
