import { expect, inject, onTestFinished, test } from 'vitest'
import { Partitioner } from '../../src/history/partitioner.ts'
import { ManualClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Database } from '../../src/store/database.ts'
import { renderFor, type Statement } from '../../src/store/statement.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { HOT, type Hot, SHARDS } from './hot-statements.ts'
import { START } from './kit.ts'

const ROWS = 50_000

const HOT_TABLES = /^(runs|jobs|timers|specs|checkpoints|edges|outbox)/
/** By these one finds a job or a run; whoever reads them without naming it reads the whole table. */
const BY_KEY = /^(?:runs|jobs|timers|specs_\w+|checkpoints)_pkey$/
const NAMES_JOB = /\b(?:job_id|id) = /

/** Every way in which the plan reads a hot table: the index, or the kind of scan that is none. */
function readsOf(plan: Record<string, unknown>): string[] {
  const kind = String(plan['Node Type'])
  const table = String(plan['Relation Name'] ?? '')
  const index = plan['Index Name']
  const below = ((plan.Plans as Record<string, unknown>[] | undefined) ?? []).flatMap(readsOf)
  // A bitmap's index is named below it; by its place a row is found whatever the statistics say.
  if (kind === 'Bitmap Heap Scan' || kind === 'Tid Scan' || !kind.includes('Scan')) return below
  if (typeof index === 'string') {
    if (!HOT_TABLES.test(index)) return below
    const isAll = BY_KEY.test(index) && !NAMES_JOB.test(String(plan['Index Cond'] ?? ''))
    return [...below, isAll ? `all of ${index}` : index]
  }
  return HOT_TABLES.test(table) ? [...below, `${kind} of ${table}`] : below
}

const allows = ({ by }: Hot, read: string): boolean =>
  by.includes(read) || (by.includes('specs') && /^specs_\w+_pkey$/.test(read))

const literal = (value: unknown): string =>
  value === null ? 'null' : `'${text(value).replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const text = (value: unknown): string =>
  Array.isArray(value)
    ? `{${value.map((one) => (one === null ? 'null' : JSON.stringify(String(one)))).join(',')}}`
    : String(value)

async function setup() {
  const database = await createDatabase({ fresh: true })
  onTestFinished(() => database.drop())
  const db = new Database({
    connection: inject('postgres'),
    schema: database.schema,
    logger: silentLogger,
  })
  onTestFinished(() => db.close())
  await new Partitioner({ db, clock: new ManualClock(START), logger: silentLogger }).ensure()
  // A connection as the engine's own, with its settings for the planner.
  const client = await db.connect()
  onTestFinished(() => client.end())
  for (const table of ['runs', 'jobs', 'timers', 'specs_kept', 'checkpoints'])
    await database.query(`alter table ${table} set (autovacuum_enabled = off)`)

  const statements = new Map<string, { statement: Statement; values: readonly unknown[] }>()
  for (const [name, { send }] of Object.entries(HOT)) {
    // Only what would be sent is wanted; there is no answer to go on with.
    const sent = (statement: Statement, values: readonly unknown[]): Promise<never> => {
      statements.set(name, { statement, values })
      return Promise.reject(new Error('sent'))
    }
    await expect(send({ query: sent, execute: sent })).rejects.toThrow('sent')
  }
  for (const statement of new Set([...statements.values()].map(({ statement }) => statement)))
    await client.query(`prepare ${statement.name} as ${renderFor(database.schema, statement)}`)

  const explain = async (mode: 'force_generic_plan' | 'force_custom_plan') => {
    await client.query(`set plan_cache_mode = ${mode}`)
    const wrong: string[] = []
    for (const [name, { statement, values }] of statements) {
      const args = values.length === 0 ? '' : `(${values.map(literal).join(', ')})`
      const { rows } = await client.query(`explain (format json) execute ${statement.name}${args}`)
      const reads = parsed(rows[0]['QUERY PLAN']).flatMap(({ Plan }) => readsOf(Plan))
      expect(reads, name).not.toEqual([])
      for (const read of reads) if (!allows(HOT[name] as Hot, read)) wrong.push(`${name}: ${read}`)
    }
    return wrong
  }
  return { ...database, explain }
}

const parsed = (json: unknown): { Plan: Record<string, unknown> }[] =>
  (typeof json === 'string' ? JSON.parse(json) : json) as { Plan: Record<string, unknown> }[]

const load = async ({ query, fabricate }: TestDatabase) => {
  const id = `('019b76da-a800-7' || lpad(to_hex(n % ${SHARDS}), 3, '0') || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
  await fabricate(
    `insert into runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version, attempt, failures,
       timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents, gate_key)
     select to_timestamp($1), to_timestamp($1) + n * interval '1 ms', n, case n % 3 when 1 then 9 end, to_timestamp($1), to_timestamp($1) + n * interval '1 ms',
       to_timestamp($1), ${id}, 1, 1, 1, 1, 0, 1000, n % ${SHARDS}, n % 4, 5, 0, n % 2, true, false, false, case when n % 7 = 0 then n % 3 end
     from generate_series(1, ${ROWS}) n`,
    [START / 1000],
  )
  await query(
    `insert into timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
     select to_timestamp($1) + n * interval '1 ms', to_timestamp($1), ${id}, 1, 1, 1, 1, 1000, 0, n % ${SHARDS}, 5, n % 2, 0
     from generate_series(1, ${ROWS}) n`,
    [START / 1000],
  )
  await query(
    `insert into jobs (updated_at, id, tenant_id, version, shard, status, definition)
     select to_timestamp($1), ${id}, 1, 1, n % ${SHARDS}, n % 4, case n % 8 when 0 then '{"startDeadlineMs":60000}' else '{}' end::json
     from generate_series(1, ${ROWS}) n`,
    [START / 1000],
  )
  await query(
    `insert into edges (child_nominal, parent, child, tenant_id, shard, child_shard, kind, wanted, on_failure)
     select to_timestamp($1), ${id}, gen_random_uuid(), 1, n % ${SHARDS}, 1, 0, 0, 0 from generate_series(1, ${ROWS}) n`,
    [START / 1000],
  )
}

test('with fresh statistics every hot statement reads its tables by the index it was made for', async () => {
  const t = await setup()
  await load(t)
  await t.query('vacuum analyze runs')
  await t.query('vacuum analyze timers')
  await t.query('vacuum analyze jobs')
  expect(await t.explain('force_custom_plan')).toEqual([])
  expect(await t.explain('force_generic_plan')).toEqual([])
})

test('a plan made while the tables were empty reads by the same indexes when they have grown', async () => {
  const t = await setup()
  await t.query('analyze runs')
  await t.query('analyze timers')
  await t.query('analyze jobs')
  await t.explain('force_generic_plan')
  await load(t)
  expect(await t.explain('force_custom_plan')).toEqual([])
  expect(await t.explain('force_generic_plan')).toEqual([])
})

test('with statistics of full tables that are now nearly empty and bloated the indexes stay the same', async () => {
  const t = await setup()
  await load(t)
  await t.fabricate('update runs set turn = turn + 1')
  await t.query('update timers set version = version')
  await t.query('analyze runs')
  await t.query('analyze timers')
  await t.query('analyze jobs')
  await t.fabricate('delete from runs where turn % 100 > 0')
  await t.query('delete from jobs where tenant_id = 1 and version = 1 and status > 0')
  await t.query(`delete from timers where due_at > to_timestamp($1)`, [START / 1000 + 0.5])
  expect(await t.explain('force_custom_plan')).toEqual([])
  await t.query('analyze runs')
  await t.query('analyze timers')
  await t.query('analyze jobs')
  expect(await t.explain('force_generic_plan')).toEqual([])
  expect(await t.explain('force_custom_plan')).toEqual([])
})
