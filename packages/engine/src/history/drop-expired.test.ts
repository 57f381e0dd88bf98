import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { newJobId } from '../job/ids.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { dropExpired } from './drop-expired.ts'
import { SPEC_COLUMNS } from './partition-ddl.sql.ts'
import { Partitioner } from './partitioner.ts'

const DAY = 86_400_000
const START = Date.UTC(2026, 0, 10, 12)

async function setup() {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  const clock = new ManualClock(START)
  await new Partitioner({ db, clock, logger: silentLogger }).ensure()
  const expire = (retentionDays?: number) =>
    dropExpired({ db, clock, logger: silentLogger, ...(retentionDays === undefined ? {} : { retentionDays }) })
  const specify = async (shard: number, at = START) => {
    const jobId = newJobId(shard, at, systemRandom)
    await database.query(
      `insert into specs (updated_at, paused_at, job_id, tenant_id, version, shard, name, pause_reason, definition)
       values (now(), now(), $1, 1, 3, $2, 'name', 'reason', '{"queue": "emails"}')`,
      [jobId, shard],
    )
    return jobId
  }
  const addTimer = (jobId: string, shard: number) =>
    database.query(
      `insert into timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
       values ('2030-01-01', '2030-01-01', $1, 1, 1, 1, 1, 0, 0, $2, 5, 0, 0)`,
      [jobId, shard],
    )
  const addRun = (jobId: string, shard: number) =>
    database.fabricate(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority,
         cause, delivery, one_off, cancel_requested, has_dependents)
       values ('2026-01-10', '2026-01-10', 0, $1, 1, 1, 1, 0, 0, 0, $2, 2, 5, 1, 0, true, false, false)`,
      [jobId, shard],
    )
  const addDeadLetter = (jobId: string, shard: number) =>
    database.query(
      `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority,
         cause, delivery, one_off)
       values ('2026-01-10', '2026-01-10', '2026-01-10', $1, 1, 1, 1, 5, 5, 0, $2, 5, 1, 0, true)`,
      [jobId, shard],
    )
  const specs = async () =>
    database.query<{ job_id: string; table: string }>(
      'select job_id, tableoid::regclass::text as table from specs order by job_id',
    )
  return { ...database, db, clock, expire, specify, addTimer, addRun, addDeadLetter, specs }
}

test('a day stays until its last instant is older than the retention, then all its tables go', async () => {
  const t = await setup()
  t.clock.advance(Date.UTC(2026, 0, 10) + 401 * DAY - 1 - START)
  expect((await t.expire()).dropped.sort()).toEqual([
    'attempt_logs_20260109',
    'attempts_20260109',
    'job_changes_20260109',
    'skips_20260109',
    'specs_20260109',
  ])
  t.clock.advance(1)
  expect((await t.expire()).dropped.sort()).toEqual([
    'attempt_logs_20260110',
    'attempts_20260110',
    'job_changes_20260110',
    'skips_20260110',
    'specs_20260110',
  ])
  expect(await t.expire()).toEqual({ dropped: [], busy: [], kept: [], waitMs: 3_600_000 })
})

test('a spec that a timer, a run or a dead letter refers to outlives its day, whole', async () => {
  const t = await setup()
  const [timed, live, dead, over] = [await t.specify(0), await t.specify(63), await t.specify(4095), await t.specify(1)]
  await t.addTimer(timed, 0)
  await t.addRun(live, 63)
  await t.addDeadLetter(dead, 4095)
  const all = await t.query<Record<string, unknown>>(`select * from specs where job_id <> $1 order by job_id`, [over])
  expect(Object.keys(all[0] ?? {}).sort()).toEqual(SPEC_COLUMNS.split(', ').sort())

  t.clock.advance(500 * DAY)
  await expireAll(t.expire)
  expect(await t.query(`select * from specs order by job_id`)).toEqual(all)
  expect((await t.specs()).map(({ table }) => table)).toEqual(['specs_kept', 'specs_kept', 'specs_kept'])
})

test('a day of specs with too many that are referred to stays as it is', async () => {
  const t = await setup()
  await t.query(
    `insert into specs (updated_at, job_id, tenant_id, version, shard, definition)
     select now(), ('019ba77c-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 1, 1, 0, '{}' from generate_series(1, 10001) n`,
  )
  await t.query(
    `insert into dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority,
       cause, delivery, one_off)
     select '2026-01-10', '2026-01-10', '2026-01-10', job_id, 1, 1, 1, 5, 5, 0, shard, 5, 1, 0, true from specs`,
  )
  const [one] = await t.specs()
  expect(one?.table).toBe('specs_20260110')
  t.clock.advance(500 * DAY)
  const kept = await expireAll(t.expire)
  expect(kept).toEqual(['specs_20260110'])
  expect(await t.query(`select count(*)::int from specs_20260110`)).toEqual([{ count: 10_001 }])
  await t.query(`delete from dead_letters where job_id = $1`, [one?.job_id])
  expect((await t.expire()).dropped).toEqual(['specs_20260110'])
  expect(await t.query(`select count(*)::int from specs`)).toEqual([{ count: 10_000 }])
})

test('a day that somebody reads is left for a little later', async () => {
  const t = await setup()
  const reader = new pg.Client(t.connection)
  await reader.connect()
  onTestFinished(() => reader.end())
  await reader.query('begin')
  await reader.query('select count(*) from skips_20260109')
  t.clock.advance(Date.UTC(2026, 0, 10) + 400 * DAY - START)
  const first = await t.expire()
  expect(first.busy).toEqual(['skips_20260109'])
  expect(first.waitMs).toBeLessThanOrEqual(60_000)
  await reader.query('commit')
  expect(await t.expire()).toMatchObject({ dropped: ['skips_20260109'], busy: [] })
})

async function expireAll(expire: () => ReturnType<typeof dropExpired>): Promise<string[]> {
  for (;;) {
    const { waitMs, kept } = await expire()
    if (waitMs > 0) return kept
  }
}
