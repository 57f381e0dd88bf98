import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { Partitioner } from '../history/partitioner.ts'
import { newJobId, shardOfJob } from '../job/ids.ts'
import { OUTCOME, RUN_STATE } from '../job/states.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { readScale } from './scale.sql.ts'

const NOW = Date.UTC(2026, 10, 15, 13, 30)

async function setup() {
  const database = await createDatabase({ days: { around: NOW, ahead: 14 } })
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  await new Partitioner({ db, clock: new ManualClock(NOW), logger: silentLogger }).ensure()
  await database.query(`insert into tenants (id, name) values (2, 'other')`)
  await database.query('delete from queues')
  await database.query(
    `insert into queues (id, tenant_id, name) values (1, 1, 'mails'), (2, 1, 'calls'), (3, 2, 'mails')`,
  )
  let made = 0
  /** Runs in flight, each of a job of its own. */
  const runs = async (count: number, { queue = 1, tenant = 1, state = 0 as number, due = NOW, delivery = 0 } = {}) => {
    const ids = Array.from({ length: count }, () => newJobId(made++ % 8, NOW, systemRandom))
    await database.fabricate(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
         delivery, one_off, cancel_requested, has_dependents, lease_until)
       select to_timestamp($1), to_timestamp($1), 0, u.id, $3, $4, 1, 0, 0, 0, u.shard, $5, 5, 0, $6, false, false, false, to_timestamp($1)
       from unnest($2::uuid[], $7::int[]) as u (id, shard)`,
      [due / 1000, ids, tenant, queue, state, delivery, ids.map(shardOfJob)],
    )
  }
  const ended = async (
    count: number,
    { queue = 1, tenant = 1, ended = NOW, tookMs = 0, waitedMs = 0, outcome = OUTCOME.succeeded as number } = {},
  ) => {
    await database.query(
      `insert into attempts (nominal_at, due_at, leased_at, started_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
       select to_timestamp($1), to_timestamp($1), to_timestamp($2), to_timestamp($2), to_timestamp($3), gen_random_uuid(), $4, $5, 1, 1, 0, $6, 0, true, true
       from generate_series(1, $7)`,
      [(ended - tookMs - waitedMs) / 1000, (ended - tookMs) / 1000, ended / 1000, tenant, queue, outcome, count],
    )
  }
  const scale = (queue = 'mails', { targetLagMs = 10_000, perWorker = 10 } = {}) =>
    readScale(db, { tenantId: 1, queue, now: NOW, targetLagMs, perWorker })
  return { ...database, db, runs, ended, scale }
}

test('an empty queue wants nobody, and of one that does not exist nothing is said', async () => {
  const t = await setup()
  expect(await t.scale()).toEqual({
    ...{ queue: 'mails', workers: 0, slots: 0, backlog: 0, running: 0 },
    ...{ serviceMs: null, arrivalsPerSecond: 0, targetLagMs: 10_000, perWorker: 10 },
  })
  expect(await t.scale('none')).toBeNull()
  expect(await t.scale('no such name')).toBeNull()
})

test('what waits and what is performed is counted for the one queue of the one tenant', async () => {
  const t = await setup()
  const old = NOW - 3_600_000
  await t.runs(12, { due: old })
  await t.runs(3, { due: old, delivery: 1 })
  await t.runs(4, { due: old, state: RUN_STATE.leased })
  await t.runs(6, { due: old, state: RUN_STATE.waiting })
  await t.runs(50, { due: old, queue: 2 })
  await t.runs(50, { due: old, queue: 3, tenant: 2 })
  expect(await t.scale()).toMatchObject({ backlog: 15, running: 4, arrivalsPerSecond: 0, serviceMs: null })
})

test('the service time is the mean of the attempts of the last five minutes that were performed to their end', async () => {
  const t = await setup()
  await t.ended(2, { tookMs: 100 })
  await t.ended(2, { tookMs: 300, outcome: OUTCOME.failed })
  await t.ended(9, { tookMs: 60_000, outcome: OUTCOME.lost })
  await t.ended(9, { tookMs: 9_000, outcome: OUTCOME.released })
  await t.ended(9, { tookMs: 9_000, ended: NOW - 300_001 })
  await t.ended(9, { tookMs: 9_000, queue: 2 })
  expect(await t.scale()).toMatchObject({ serviceMs: 200 })
})

test('arrivals are what became due in the last minute, whether it waits, is performed or has ended', async () => {
  const t = await setup()
  await t.runs(60, { due: NOW - 1_000 })
  await t.runs(60, { due: NOW - 1_000, state: RUN_STATE.leased })
  await t.ended(60, { tookMs: 10 })
  await t.ended(60, { tookMs: 10, waitedMs: 90_000 })
  await t.runs(60, { due: NOW - 90_000 })
  expect(await t.scale()).toMatchObject({ arrivalsPerSecond: 3 })
})

test('more attempts than are looked at give the rate of the time that they cover', async () => {
  const t = await setup()
  for (let i = 0; i < 40; i++) await t.ended(500, { ended: NOW - i * 250, tookMs: 5 })
  // 2,000 a second; what is looked at reaches 5 s back.
  const { arrivalsPerSecond, serviceMs } = (await t.scale()) ?? {}
  expect(arrivalsPerSecond).toBeGreaterThan(1_900)
  expect(arrivalsPerSecond).toBeLessThan(2_200)
  expect(serviceMs).toBe(5)
})

test('a paused queue wants workers only for what is being performed', async () => {
  const t = await setup()
  await t.runs(500)
  await t.runs(3, { state: RUN_STATE.leased })
  expect((await t.scale())?.workers).toBeGreaterThan(1)
  await t.query('update queues set paused_at = now() where id = 1')
  expect(await t.scale()).toMatchObject({ workers: 1, slots: 3, backlog: 500 })
})
