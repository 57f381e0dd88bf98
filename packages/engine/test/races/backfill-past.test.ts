import { expect, test, vi } from 'vitest'
import type { Backfill } from '../../src/backfill/backfill.ts'
import { LookAhead } from '../../src/backfill/look-ahead.ts'
import { dropExpired } from '../../src/history/drop-expired.ts'
import { shardOfJob } from '../../src/job/ids.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import type { Queryable } from '../../src/store/database.ts'
import { type LockedTimer, lockTimer } from '../../src/timers/lock-timer.sql.ts'
import { MINUTE, START, setup } from './setup.ts'

const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const at = (ms: number) => new Date(START + ms)
const MINUTELY = {
  cron: '* * * * *',
  startAt: at(-20 * MINUTE),
  queue: 'reports',
  overlap: 'allow',
  payload: 1,
} as const

test('a backfill stops where the schedule has still to decide, also if that has become earlier, and goes on when it has', async () => {
  const t = await setup()
  const a = await t.startNode()
  const { jobId } = await a.jobs.create(MINUTELY)
  const { backfillId } = await a.backfills.create(jobId, { from: at(-20 * MINUTE), to: at(0), concurrency: 50 })
  const decidesFrom = (minute: number) => t.query('update timers set nominal_at = $1', [at(minute * MINUTE)])
  const made = async () => (await t.query('select from backfill_runs')).length
  await decidesFrom(-15)
  await a.backfill(jobId)
  expect(await made()).toBe(5)
  const begun = vi.spyOn(a.db.bulk, 'transaction')
  await a.backfill(jobId)
  expect(begun).not.toHaveBeenCalled()
  // The schedule ran two of them, which are over, and left the others out.
  await t.query(
    `insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
     select n, n, $3, $1, 1, 1, 1, 1, $2, 1, 0, true, true from unnest($4::timestamptz[]) n`,
    [jobId, shardOfJob(jobId), at(0), [at(-15 * MINUTE), at(-12 * MINUTE)]],
  )
  await decidesFrom(-10)
  await a.backfill(jobId)
  expect(await made()).toBe(8)
  await decidesFrom(1)
  await a.backfill(jobId)
  expect(await made()).toBe(18)
  expect(await a.backfills.get(backfillId)).toMatchObject({ position: at(0), counts: { created: 18, leftOut: 2 } })
})

test('a time of which history keeps nothing any more is not run again: the range is cut, and the answer says so', async () => {
  const t = await setup()
  const a = await t.startNode()
  const { jobId } = await a.jobs.create({ cron: '0 12 * * *', queue: 'reports', overlap: 'allow', payload: 1 })
  const tell = async (ms: number, next: number) => {
    a.clock.advance(ms)
    await a.engine.partitioner.ensure()
    await t.query('update timers set nominal_at = $1', [at(next)])
  }
  // As long as all that the job did is on record, it may begin before the job did.
  await tell(399 * DAY + HOUR, 399 * DAY + 12 * HOUR)
  expect(await a.backfills.preview(jobId, { from: at(-5 * DAY), to: at(0) })).toMatchObject({ count: 5, notes: [] })
  await tell(3 * DAY, 402 * DAY + 12 * HOUR)
  await dropExpired({ db: a.db, clock: a.clock, logger: silentLogger, retentionDays: 400 })
  const notes = [
    'Begins at 2026-01-03T00:00:00.000Z, the oldest day that history keeps: which times before it have had a run is not known any more.',
  ]
  const range = { from: at(-5 * DAY), to: at(5 * DAY) }
  expect(await a.backfills.preview(jobId, range)).toMatchObject({ count: 3, leftOut: 0, from: at(2 * DAY), notes })
  await expect(a.backfills.create(jobId, { from: at(-5 * DAY), to: at(DAY) })).rejects.toThrow(
    /there is nothing to run. Begins at 2026-01-03/,
  )
  // The days go on while it runs: what it has not come to by then is left out.
  const { backfillId } = await a.backfills.create(jobId, range)
  await tell(2 * DAY, 404 * DAY + 12 * HOUR)
  await a.backfill(jobId)
  expect(await t.query('select nominal_at from backfill_runs')).toEqual([{ nominal_at: at(4.5 * DAY) }])
  expect(await a.backfills.get(backfillId)).toMatchObject({ counts: { total: 3, created: 1, leftOut: 2 } })
})

test('traces are looked for once for many runs, but what another backfill made meanwhile is seen', async () => {
  const t = await setup()
  const a = await t.startNode()
  const { jobId } = await a.jobs.create({ ...MINUTELY, startAt: at(-DAY) })
  const shard = shardOfJob(jobId)
  const timer = (await lockTimer(a.db.bulk, shard, jobId)) as LockedTimer
  const { schedule } = await a.engine.schedules.mustGet({ shard, scheduleId: timer.scheduleId ?? '' })
  const sent: string[] = []
  const counting: Queryable = {
    query: (statement, values) => {
      sent.push(statement.name)
      return a.db.query(statement, values)
    },
    execute: (statement, values) => a.db.execute(statement, values),
  }
  const ahead = new LookAhead()
  const look = (minute: number, job = timer) =>
    ahead.next(
      counting,
      schedule,
      { id: 'one', shard, jobId, position: START + minute * MINUTE, to: START } as Backfill,
      job,
      1,
    )
  const searches = () => sent.filter((name) => name === 'taken_nominal_times').length
  for (let minute = -900; minute < -700; minute++) expect((await look(minute)).times[0]).toBe(START + minute * MINUTE)
  expect(searches()).toBe(2)
  await t.query(
    `insert into backfill_runs (nominal_at, job_id, backfill_id, tenant_id, shard, outcome) values ($1, $2, $2, 1, $3, 1)`,
    [at(-700 * MINUTE), jobId, shard],
  )
  expect((await look(-701)).taken).toEqual(new Set([START - 700 * MINUTE]))
  expect(searches()).toBe(2)
  await look(-701, { ...timer, jobVersion: timer.jobVersion + 1 })
  expect(searches()).toBe(3)
})
