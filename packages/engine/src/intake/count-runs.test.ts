import type pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, KIT_DAYS } from '../../test/database.ts'
import { newJobId, shardOfJob } from '../job/ids.ts'
import { CAUSE, OUTCOME, RUN_STATE } from '../job/states.ts'
import { silentLogger } from '../runtime/logger.ts'
import { seededRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { renderFor, type Statement } from '../store/statement.ts'
import { countScheduledRuns } from './count-runs.sql.ts'

const START = Date.UTC(2026, 0, 1)
const jobId = newJobId(1, START, seededRandom(1))
const job = { shard: shardOfJob(jobId), jobId }

async function setup() {
  const database = await createDatabase({ days: KIT_DAYS })
  onTestFinished(() => database.drop())
  const { schema, query, fabricate } = database
  const db = new Database({ connection: inject('postgres'), schema, logger: silentLogger })
  onTestFinished(() => db.close())
  /** Ends of its first runs, a second apart, the newest first in the table. */
  const ended = (runs: number, { times = 1, cause = CAUSE.schedule as number, final = true } = {}) =>
    query(
      `insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
       select at, at, at + n * interval '1 hour', $2, 1, 1, 1, n, ${job.shard}, ${OUTCOME.succeeded}, ${cause}, true, ${final}
       from generate_series(${runs}, 1, -1) i, generate_series(1, ${times}) n, lateral (select to_timestamp($1::float8 / 1000) + i * interval '1 second' as at) t`,
      [START, jobId],
    )
  const alive = (second: number) =>
    fabricate(
      `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents)
       select at, at, 1, $2, 1, 1, 1, 0, 0, 1000, ${job.shard}, ${RUN_STATE.ready}, 5, ${CAUSE.schedule}, 0, false, false, false
       from (select to_timestamp($1::float8 / 1000) as at) t`,
      [START + second * 1_000, jobId],
    )
  return { ...database, db, ended, alive }
}

test('each nominal time of the schedule counts once, however often it has ended, and whether or not it is alive', async () => {
  const t = await setup()
  await t.ended(5, { times: 2 })
  await t.ended(9, { final: false })
  await t.alive(5)
  await t.alive(6)
  expect(await countScheduledRuns(t.db, job, 100)).toBe(6)
  expect(await countScheduledRuns(t.db, job, 4)).toBe(4)
})

test('triggers and backfills do not count', async () => {
  const t = await setup()
  await t.ended(3, { cause: CAUSE.trigger })
  expect(await countScheduledRuns(t.db, job, 100)).toBe(0)
})

test.each(['force_custom_plan', 'force_generic_plan'])(
  'of a long history no more is read than is counted, with %s',
  async (mode) => {
    const t = await setup()
    await t.ended(20_000, { times: 2 })
    await t.query('analyze attempts')
    const client = await t.db.connect()
    onTestFinished(() => client.end())
    expect(await readOf(client, { ...t, mode })).toBeLessThan(500)
  },
)

/** Rows of history that are read to count up to a hundred. */
async function readOf(client: pg.Client, { schema, mode }: { schema: string; mode: string }): Promise<number> {
  let sent: { statement: Statement; values: readonly unknown[] } | undefined
  const query = (statement: Statement, values: readonly unknown[] = []): Promise<never[]> => {
    sent = { statement, values }
    return Promise.resolve([])
  }
  await countScheduledRuns({ query, execute: query } as never, job, 100)
  await client.query(`set plan_cache_mode = ${mode}`)
  await client.query(`prepare counting as ${renderFor(schema, sent?.statement as Statement)}`)
  const args = sent?.values.map((value) => `'${value}'`).join(', ')
  const { rows } = await client.query(`explain (analyze, format json) execute counting(${args})`)
  const json = rows[0]['QUERY PLAN']
  return rowsOf((typeof json === 'string' ? JSON.parse(json) : json)[0].Plan)
}

interface Plan {
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

function rowsOf(plan: Plan): number {
  const below = (plan.Plans ?? []).reduce((sum, one) => sum + rowsOf(one), 0)
  if (!plan['Relation Name']?.startsWith('attempts')) return below
  return below + (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
}
