import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type TestDatabase } from './database.ts'
import { fingerprintOf } from './schema-state.ts'

/** A kind of its own, so that nobody else's schema comes between. */
const DAYS = { around: Date.UTC(2025, 5, 1), ahead: 0 }

const create = () => createDatabase({ days: DAYS })

/** What the next test gets after `use`: the same schema, or one that was made for it. */
async function after(use: (database: TestDatabase) => Promise<unknown>) {
  const first = await create()
  await use(first)
  await first.drop()
  const second = await create()
  onTestFinished(() => second.drop())
  return { database: second, isSame: second.schema === first.schema }
}

const contents = async (database: TestDatabase): Promise<Record<string, unknown[]>> => {
  const tables = await database.query<{ name: string }>(
    `select relname::text as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'`,
    [database.schema],
  )
  const rows = await Promise.all(tables.map(({ name }) => database.query(`select * from ${name}`)))
  return Object.fromEntries(tables.map(({ name }, i) => [name, rows[i] ?? []]))
}

test('a schema that was given back holds what the migrations put there and nothing else', async () => {
  let before: Record<string, unknown[]> = {}
  const { database, isSame } = await after(async (first) => {
    before = await contents(first)
    await first.query(`insert into meta values ('shards', '4')`)
    await first.query(`update tenants set name = 'renamed'; delete from queues; delete from migrations`)
    await first.query(
      `insert into specs_kept select now(), null, gen_random_uuid(), 1, 1, 1, null, null, '{}' from generate_series(1, 500)`,
    )
    await first.query(`create table attempts_20250701 (like attempts including all)`)
    await first.query(
      `alter table attempts attach partition attempts_20250701 for values from ('2025-07-01') to ('2025-07-02')`,
    )
  })
  expect(isSame).toBe(true)
  expect(before.tenants).toHaveLength(1)
  expect(await contents(database)).toEqual(before)
})

const changes = [
  'create table more (id integer)',
  'create index more on jobs (name)',
  'drop index jobs_by_tenant',
  'alter table jobs add column more integer',
  'alter table jobs alter column name set not null',
  'alter table jobs alter column version set default 1',
  'alter table jobs set (fillfactor = 50)',
  'alter table jobs disable row level security',
  'alter table attempts detach partition attempts_20250601',
  'drop table skips_20250601',
  'drop policy of_tenant on jobs',
  'alter table keys add check (kind > 7)',
  'create view more as select 1 as one',
  'create sequence more',
  "create type more as enum ('one')",
  "create function more() returns integer language sql as 'select 1'",
  "create or replace function create_job(definition jsonb) returns uuid language sql as 'select gen_random_uuid()'",
  'create rule more as on delete to jobs do instead nothing',
  'revoke select on jobs from belfry_reader',
  'revoke usage on schema @ from belfry_reader',
  "create table more partition of attempts for values from ('2030-01-01') to ('2030-01-02')",
  'analyze tenants',
]

test('whatever is done to a schema besides its rows changes its fingerprint', async () => {
  const { schema, pool, drop } = await create()
  onTestFinished(drop)
  const client = await pool.connect()
  onTestFinished(() => client.release())
  const before = await fingerprintOf(client, schema)
  for (const change of changes) {
    await client.query('begin')
    await client.query(change.replace('@', schema))
    expect(await fingerprintOf(client, schema), change).not.toBe(before)
    await client.query('rollback')
    expect(await fingerprintOf(client, schema)).toBe(before)
  }
})

test.each(['alter table jobs add column more integer', 'create table more (id integer)'])(
  'a schema that something was done to is not handed out again: %s',
  async (change) => {
    expect((await after((first) => first.query(change))).isSame).toBe(false)
  },
)

test('a schema that somebody still listens to is not handed out again', async () => {
  const listener = new pg.Client(inject('postgres'))
  await listener.connect()
  onTestFinished(() => listener.end())
  const { isSame } = await after((first) => listener.query(`listen "${first.schema}_wake"`))
  expect(isSame).toBe(false)
})

test('schemas that are in use at the same time are different ones', async () => {
  const both = await Promise.all([create(), create()])
  for (const one of both) onTestFinished(() => one.drop())
  expect(both[0]?.schema).not.toBe(both[1]?.schema)
})
