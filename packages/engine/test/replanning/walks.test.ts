import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { allStatements, renderFor } from '../../src/store/statement.ts'
import { readJobsOfCalendar } from '../../src/tenants/calendar-jobs.sql.ts'
import { startKit } from '../behaviour/kit.ts'
import { startNodes } from './setup.ts'

test('a calendar in the library: jobs follow as time passes', async () => {
  const { kit } = await startKit()
  expect(await kit.calendars.put('free', { days: ['2026-01-02'], weekend: ['sat', 'sun'] })).toEqual({ created: true })
  const { jobId } = await kit.jobs.create({
    queue: 'q',
    cron: '0 9 2 * *',
    exclude: [{ calendar: 'free' }],
    onExcluded: 'next_business_day',
  })
  const nextOf = async () => (await kit.jobs.get(jobId))?.nextRunAt
  expect(await nextOf()).toEqual(new Date(Date.UTC(2026, 0, 5, 9)))
  await kit.calendars.put('free', { weekend: ['sat', 'sun'] })
  await kit.settle()
  expect(await nextOf()).toEqual(new Date(Date.UTC(2026, 0, 2, 9)))
  expect((await kit.calendars.get('free'))?.replanning).toBe(true)
  await kit.pass(15_000)
  expect(await kit.calendars.get('free')).toMatchObject({ dayCount: 0, weekend: ['sun', 'sat'], replanning: false })
  expect((await kit.calendars.list()).items).toMatchObject([{ name: 'free' }])
  await expect(kit.calendars.delete('free')).rejects.toMatchObject({ code: 'calendar_in_use' })
  await kit.jobs.cancel(jobId)
  expect(await kit.calendars.delete('free')).toBe(true)
  expect(await kit.calendars.get('free')).toBeNull()
})

test('jobs of a calendar are found without reading those that exclude nothing', async () => {
  const t = await startNodes()
  await t.engine.calendars.put(1, 'free', { days: ['2026-01-02'] }, 'bk_a')
  await t.jobs.createMany(Array.from({ length: 500 }, () => ({ queue: 'q', cron: '0 9 * * *' })))
  const jobId = await t.create({ queue: 'q', cron: '0 9 * * *', exclude: [{ calendar: 'free' }] })
  await t.create({ queue: 'q', cron: '0 9 * * *', exclude: ['2026-01-03'] })
  // What SQL may have put there before anybody has understood it.
  await t.query(`insert into jobs (updated_at, id, tenant_id, version, shard, status, definition)
    select now(), gen_random_uuid(), 1, 1, 0, 0, d::json from unnest(array['{"schedule":{"exclude":5}}', '{"schedule":{"exclude":[1,null,"x",["y"]]}}', '{"schedule":7}', '[]']) d`)
  const all = { tenantId: 1, name: 'free' }
  const { jobs } = await readJobsOfCalendar(t.db, all, '00000000-0000-0000-0000-000000000000', 100)
  expect(jobs).toMatchObject([{ jobId }])

  const client = new pg.Client(inject('postgres'))
  await client.connect()
  try {
    await client.query('set enable_seqscan = off; set plan_cache_mode = force_generic_plan')
    for (const name of ['read_jobs_of_calendar', 'count_jobs_of_calendar']) {
      const statement = allStatements().find((one) => one.name === name)
      const text = renderFor(t.schema, statement ?? { name, text: '' })
      await client.query(`prepare ${name} as ${text}`)
      const values = name.startsWith('read')
        ? `(1, 'free', '00000000-0000-0000-0000-000000000000', 100)`
        : `(1, 'free')`
      const { rows } = await client.query(`explain execute ${name}${values}`)
      expect(JSON.stringify(rows)).toContain('jobs_that_exclude')
    }
  } finally {
    await client.end()
  }
})
