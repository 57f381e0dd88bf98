import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { Expirer } from '../../src/attempts/expirer.sql.ts'
import { Partitioner } from '../../src/history/partitioner.ts'
import { Sweep } from '../../src/ready/sweep.ts'
import { sweepBlocked } from '../../src/ready/sweep-blocked.sql.ts'
import { ManualClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Wakeups } from '../../src/shards/wakeups.sql.ts'
import { Database } from '../../src/store/database.ts'
import { createDatabase } from '../database.ts'
import { MINUTE, START } from './kit.ts'

const JOBS = 2_450
const idOf = (n: number): string => `019b76da-a800-7000-8000-${n.toString(16).padStart(12, '0')}`
const ID = `('019b76da-a800-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`

/** More jobs in one shard than a piece visits, and a clock by which nothing takes any time. */
async function setup() {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const db = new Database({
    ...{ connection: inject('postgres'), schema: database.schema, logger: silentLogger },
  })
  onTestFinished(() => db.close())
  const clock = new ManualClock(START)
  await new Partitioner({ db, clock, logger: silentLogger }).ensure()
  const runs = (state: number, minute: number, which = 'true') =>
    database.fabricate(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
         delivery, one_off, cancel_requested, has_dependents)
       select to_timestamp($1), to_timestamp($1), n, ${ID}, 1, 1, 1, 0, 0, 1000, 0, $2, 5, 0, 0, false, false, false
       from generate_series(1, ${JOBS}) n where ${which}`,
      [(START + minute * MINUTE) / 1000, state],
    )
  const jobs = (status: number) =>
    database.query(
      `insert into jobs (updated_at, id, tenant_id, version, shard, status, definition)
       select to_timestamp($1), ${ID}, 1, 1, 0, $2, '{"startDeadlineMs":60000}'::json from generate_series(1, ${JOBS}) n`,
      [START / 1000, status],
    )
  return { ...database, db, clock, runs, jobs }
}

test('the sweep for blocked runs goes through a bounded number of jobs at a time, and comes past all of them', async () => {
  const t = await setup()
  await t.runs(1, 0, 'n not in (7, 1500, 2400)')
  await t.runs(3, 1)
  await t.runs(3, 2)
  const found: string[][] = []
  const sweep = new Sweep({
    clock: t.clock,
    blocked: { look: (piece) => sweepBlocked(t.db, piece, (jobId) => found.at(-1)?.push(jobId)) },
    limited: { look: async () => new Map() },
  })
  sweep.own([0, 1])
  const steps = async () => {
    for (let i = 0; i < 10; i++) {
      found.push([])
      if ((await sweep.runOnce()).waitMs > 0) return
    }
  }
  await steps()
  expect(found).toEqual([[]])
  sweep.saw({ hasBlocked: true, hasLimited: false })
  await steps()
  // Half of the thousand is for the other shard, in the first piece.
  expect(found.slice(1)).toEqual([[idOf(7)], [idOf(1500)], [idOf(2400)]])
  t.clock.advance(1_000)
  await steps()
  expect(found.slice(4)).toEqual([[idOf(7)], [idOf(1500)], [idOf(2400)]])
})

test('runs of more jobs than are visited at once end by their deadline, and of no canceled job', async () => {
  const t = await setup()
  await t.jobs(0)
  await t.runs(0, 0, 'n % 2 = 0')
  await t.runs(3, 1, 'n % 2 = 0')
  await t.query('update jobs set status = 2 where id = $1', [idOf(2)])
  await t.query('update jobs set status = 3 where id = $1', [idOf(4)])
  const gone = new Set<string>()
  const wakeups = new Wakeups()
  vi.spyOn(wakeups, 'gone').mockImplementation((jobId) => void gone.add(jobId))
  const expirer = new Expirer({ db: t.db, clock: t.clock, wakeups })
  expirer.own([0, 1])
  expirer.saw({ hasStartDeadlines: true })
  t.clock.advance(MINUTE + 1)
  const ended: number[] = []
  for (let i = 0; i < 20; i++) {
    const step = await expirer.runOnce()
    ended.push(step.ended)
    if (step.waitMs > 0) break
  }
  expect(ended).toEqual([249, 500, 475])
  expect(gone.has(idOf(2)) && !gone.has(idOf(4))).toBe(true)
  expect(await t.query('select count(*)::int as n from attempts where failure_class = 12')).toEqual([{ n: 1_224 }])
})

test('more late runs than end at once end one piece after the other', async () => {
  const t = await setup()
  await t.jobs(0)
  for (const minute of [0, 1, 2]) await t.runs(3, minute)
  const expirer = new Expirer({ db: t.db, clock: t.clock, wakeups: new Wakeups() })
  expirer.own([0])
  expirer.saw({ hasStartDeadlines: true })
  t.clock.advance(5 * MINUTE)
  let steps = 0
  for (; steps < 20; steps++) if ((await expirer.runOnce()).waitMs > 0) break
  expect(steps).toBeGreaterThan(7)
  expect(await t.query('select count(*)::int as n from runs')).toEqual([{ n: 0 }])
  expect(await t.query('select count(*)::int as n from attempts')).toEqual([{ n: 3 * JOBS }])
})
