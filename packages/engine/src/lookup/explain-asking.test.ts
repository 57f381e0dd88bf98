import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { startTestKit } from '../testing/index.ts'

const START = Date.UTC(2026, 0, 5, 8)
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const HOURLY = { queue: 'mail', cron: '0 * * * *', payload: 1 }

async function setup(start = START) {
  const database = await createDatabase({ days: { around: start, ahead: 2 } })
  onTestFinished(database.drop)
  const kit = await startTestKit({ database: inject('postgres'), schema: database.schema, start, seed: 1 })
  onTestFinished(() => kit.stop())
  const as = (actor: string) => kit.tenant('default', actor)
  const { jobs } = await as('bk_reader')
  const explain = (jobId: string, at: string) => jobs.explain(jobId, at)
  /** Time that no node sees. */
  const outage = (ms: number) => kit.clock.advance(ms)
  return { kit, as, jobs, explain, outage, query: database.query }
}

test('a minute means the time that lies in it, a second too; milliseconds mean themselves', async () => {
  const t = await setup(START + 12_345)
  const { jobId } = await t.jobs.create({ queue: 'mail', every: 'PT10M', payload: 1 })
  const { nominalAt, at } = await t.explain(jobId, '2026-01-05T08:10:00Z')
  expect([at, nominalAt]).toEqual([new Date(START + 10 * MINUTE), new Date(START + 10 * MINUTE + 12_345)])
  expect(await t.explain(jobId, '2026-01-05T08:10:12Z')).toMatchObject({ verdict: 'will_run' })
  expect(await t.explain(jobId, '2026-01-05T08:10:12.345Z')).toMatchObject({ verdict: 'will_run' })
  expect(await t.explain(jobId, '2026-01-05T08:10:12.344Z')).toMatchObject({ verdict: 'never', reason: 'expression' })
  expect(await t.explain(jobId, '2026-01-05T08:11:00Z')).toMatchObject({ verdict: 'never', nominalAt: null })
  t.kit.clock.advance(MINUTE)
  await t.kit.settle()
  await t.jobs.trigger(jobId, { overlap: 'allow' })
  const triggered = await t.explain(jobId, '2026-01-05T08:01:00Z')
  expect(triggered).toMatchObject({ verdict: 'waiting', run: { cause: 'trigger' } })
  expect(triggered.sentence).toMatch(/^The run that was triggered at 2026-01-05 08:01:12 UTC is ready/)
})

test('history that has expired is said to be so', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create({ ...HOURLY, cron: '0 0 1 1 *' })
  t.kit.clock.advance(500 * DAY)
  expect(await t.explain(jobId, '2026-01-06T00:00:00Z')).toMatchObject({
    verdict: 'unknown',
    reason: 'history_expired',
    version: null,
  })
})

test('a range lists every nominal time once, oldest first, page by page', async () => {
  const t = await setup()
  await t.kit.handle('mail', () => {})
  const { jobId } = await t.jobs.create(HOURLY)
  await t.kit.pass(2 * HOUR + MINUTE)
  await t.jobs.pause(jobId)
  await t.kit.pass(2 * HOUR)
  await t.jobs.resume(jobId)
  const range = { from: '2026-01-05T00:00:00Z', to: '2026-01-05T16:00:00Z', limit: 3 }
  const all: (readonly [string, string])[] = []
  let cursor: string | null = null
  do {
    const page = await t.jobs.explainRange(jobId, cursor === null ? range : { ...range, cursor })
    expect(page.items.length).toBeLessThanOrEqual(3)
    all.push(...page.items.map(({ local, verdict }) => [local.slice(11, 16), verdict] as const))
    cursor = page.nextCursor
  } while (cursor !== null)
  expect(all).toEqual([
    ['08:00', 'ran'],
    ['09:00', 'ran'],
    ['10:00', 'ran'],
    ['11:00', 'skipped'],
    ['12:00', 'skipped'],
    ['13:00', 'will_run'],
    ['14:00', 'will_run'],
    ['15:00', 'will_run'],
  ])
})

test('a job of another tenant, a deleted one and none at all are the same', async () => {
  const t = await setup()
  const { jobId } = await t.jobs.create(HOURLY)
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  const { jobs } = await t.kit.tenant('other')
  await expect(jobs.explain(jobId, '2026-01-05T09:00:00Z')).rejects.toMatchObject({ code: 'not_found' })
  await expect(t.explain('nonsense', '2026-01-05T09:00:00Z')).rejects.toMatchObject({ code: 'not_found' })
  await t.jobs.delete(jobId)
  await expect(t.explain(jobId, '2026-01-05T09:00:00Z')).rejects.toMatchObject({ code: 'not_found' })
  await expect(t.explain(jobId, 'tomorrow')).rejects.toMatchObject({ code: 'invalid_argument' })
  const range = { from: '2026-01-05T09:00:00Z', to: '2026-01-05T09:00:00Z' }
  await expect(t.jobs.explainRange(jobId, range)).rejects.toMatchObject({ code: 'invalid_argument' })
})
