import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { silentLogger } from '../runtime/logger.ts'
import { type Migration, parseMigration } from './migrations.ts'
import { loadMigrations, migrate } from './migrator.ts'

async function setup() {
  const database = await createDatabase({ migrations: [] })
  onTestFinished(() => database.drop())
  const connect = async () => {
    const client = new pg.Client(inject('postgres'))
    await client.connect()
    onTestFinished(() => client.end())
    return client
  }
  const client = await connect()
  const run = (migrations: Migration[], by = client) =>
    migrate(by, { schema: database.schema, migrations, logger: silentLogger })
  const tables = async () => {
    const rows = await database.query<{ relname: string }>(
      `select relname from pg_class where relnamespace = $1::regnamespace and relkind = 'r' order by relname`,
      [database.schema],
    )
    return rows.map((row) => row.relname)
  }
  return { ...database, connect, run, tables }
}

const one = parseMigration('0001_one.sql', 'create table first (a int); insert into first values (1);')
const two = parseMigration('0002_two.sql', 'create table second (a int);')

test('the migrations of this program apply to an empty schema, and a second time change nothing', async () => {
  const t = await setup()
  const migrations = await loadMigrations()
  expect((await t.run(migrations)).applied).toEqual(migrations.map(({ number }) => number))
  expect((await t.run(migrations)).applied).toEqual([])
})

test('runs that receipts list become rows of their holders', async () => {
  const t = await setup()
  const migrations = await loadMigrations()
  await t.run(migrations.filter(({ number }) => number < 17))
  const ids = [1, 2, 3].map((n) => `00000000-0000-7000-8000-00000000000${n}`)
  const receipt = (holder: number, jobIds: string[], holders: string | null) =>
    t.query(
      `insert into receipts (holder, leased_at, lease_until, tenant_id, queue_id, one_off, job_ids, nominal_ats, due_ats, job_versions, timeouts_ms,
         run_shards, priorities, run_causes, holders)
       select $1::bigint, now(), now() + interval '30 s', 1, 1, true, $2::uuid[], array_fill(now(), n), array_fill(now(), n), array_fill(1, n),
         array_fill(60000, n), array_fill(0::smallint, n), array_fill(5::smallint, n), array_fill(0::smallint, n), $3::bigint[]
       from (select array[cardinality($2::uuid[])] as n) n`,
      [holder, jobIds, holders],
    )
  await receipt(1, ids.slice(0, 2), '{-7,-8}')
  await receipt(2, ids.slice(2), null)
  await t.run(migrations)
  expect(await t.query('select job_id, holder::int, state, attempt from runs order by job_id')).toEqual([
    { job_id: ids[0], holder: -7, state: 1, attempt: 1 },
    { job_id: ids[1], holder: -8, state: 1, attempt: 1 },
    { job_id: ids[2], holder: 2, state: 1, attempt: 1 },
  ])
})

test('a claim of an older node that comes while receipts become rows loses no run', async () => {
  const t = await setup()
  const [migrator, reader, old] = [await t.connect(), await t.connect(), await t.connect()]
  for (const client of [reader, old]) await client.query(`set search_path to "${t.schema}"`)
  const all = await loadMigrations()
  await t.run(all.filter(({ number }) => number < 18))
  const id = '00000000-0000-7000-8000-000000000001'
  await old.query(
    `insert into runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
       delivery, one_off, cancel_requested, has_dependents) values (now(), now(), 1, $1, 1, 1, 1, 0, 0, 60000, 0, 0, 5, 0, 0, true, false, false)`,
    [id],
  )
  // Any reader of the view, so that the migration stops between its insert and its drop.
  await reader.query('begin; select count(*) from held_slots')
  const { pid } = (await migrator.query('select pg_backend_pid() as pid')).rows[0]
  const migrating = t.run(all, migrator)
  const waits = 'select count(*)::int as n from pg_stat_activity where wait_event_type = $1 and pid = $2'
  await expect.poll(async () => (await old.query(waits, ['Lock', pid])).rows[0].n, { interval: 5 }).toBe(1)
  // What the older node's claim sends: the run leaves its row and stands in a receipt.
  const claiming = old.query(
    `with gone as (delete from runs where job_id = $1 returning *)
     insert into receipts (holder, leased_at, lease_until, tenant_id, queue_id, one_off, job_ids, nominal_ats, due_ats, job_versions, timeouts_ms, run_shards, priorities, run_causes)
     select 7, now(), now() + interval '30 s', tenant_id, queue_id, true, array_agg(job_id), array_agg(nominal_at), array_agg(due_at), array_agg(job_version),
       array_agg(timeout_ms), array_agg(shard), array_agg(priority), array_agg(cause) from gone group by tenant_id, queue_id`,
    [id],
  )
  claiming.catch(() => {})
  await reader.query('commit')
  await migrating
  await expect(claiming).rejects.toThrow('receipts')
  expect(await t.query('select job_id from runs')).toEqual([{ job_id: id }])
})

test('only what is missing is applied, inside of the schema, and remembered', async () => {
  const t = await setup()
  await t.run([one])
  expect((await t.run([one, two])).applied).toEqual([2])
  expect(await t.tables()).toEqual(['first', 'migrations', 'second'])
  expect(await t.query('select number, name, breaking from migrations order by number')).toEqual([
    { number: 1, name: 'one', breaking: false },
    { number: 2, name: 'two', breaking: false },
  ])
})

test('many nodes that start at once on an empty schema apply every migration once, however short their patience with locks', async () => {
  const t = await setup()
  await t.query('drop table migrations')
  await t.query(`drop schema ${t.schema}`)
  const clients = await Promise.all(Array.from({ length: 8 }, t.connect))
  await Promise.all(clients.map((client) => client.query("set lock_timeout = '1ms'")))
  const results = await Promise.all(clients.map((client) => t.run([one, two], client)))
  expect(results.flatMap(({ applied }) => applied).sort()).toEqual([1, 2])
  expect(await t.query('select a from first')).toEqual([{ a: 1 }])
})

test('a migration that fails leaves nothing of itself, says where it failed, and can be repaired', async () => {
  const t = await setup()
  const refused = async (end: string, why: RegExp) => {
    const broken = parseMigration('0002_two.sql', `create table second (a int primary key);\n${end}\nselect 1;`)
    await expect(t.run([one, broken])).rejects.toMatchObject({
      code: 'migration_failed',
      message: expect.stringMatching(why),
    })
    expect(await t.tables()).toEqual(['first', 'migrations'])
  }
  await refused(
    'insert into nowhere values (1);',
    /0002_two.*"nowhere" does not exist \(at line 2: insert into nowhere/,
  )
  await refused('insert into second values (1; 2);', /0002_two.*syntax error.* \(at line 2: insert into second/)
  await refused('insert into second values (1), (1);', /0002_two.*duplicate key.*"second_pkey"$/)
  expect((await t.run([one, two])).applied).toEqual([2])
})

test('a program that meets a newer schema goes on if nothing in it is breaking', async () => {
  const t = await setup()
  await t.run([one, two])
  expect((await t.run([one])).applied).toEqual([])
})

test('a program that meets a newer breaking schema refuses and says what to do', async () => {
  const t = await setup()
  const breaking = parseMigration('0002_two.sql', '-- breaking\ncreate table second (a int);')
  const three = parseMigration('0003_three.sql', 'create table third (a int);')
  await t.run([one, breaking, three])
  await expect(t.run([one])).rejects.toMatchObject({
    code: 'schema_too_new',
    message: expect.stringMatching(/0003_three.*0001_one.*0002_two.*newer Belfry/),
  })
})

test('a server that is too old is refused before anything is made', async () => {
  const t = await setup()
  const client = await t.connect()
  const old = {
    query: (text: string, values?: unknown[]) =>
      text.includes('server_version')
        ? Promise.resolve({ rows: [{ number: 140_023, version: '14.23' }] })
        : client.query(text, values),
  }
  await t.query(`drop schema ${t.schema} cascade`)
  await expect(migrate(old, { schema: t.schema, migrations: [one], logger: silentLogger })).rejects.toMatchObject({
    code: 'migration_failed',
    message: 'this database is PostgreSQL 14.23, and Belfry needs 15 or newer',
  })
  expect(await t.query('select from pg_namespace where nspname = $1', [t.schema])).toEqual([])
})

test('a migration that was changed after it had been applied is an error', async () => {
  const t = await setup()
  await t.run([one])
  const changed = parseMigration('0001_one.sql', 'create table first (a bigint);')
  await expect(t.run([changed, two])).rejects.toMatchObject({
    code: 'migration_failed',
    message: expect.stringMatching(/0001_one/),
  })
  expect(await t.tables()).toEqual(['first', 'migrations'])
})

test('other line ends do not make another migration', () => {
  const text = '-- breaking\ncreate table a (b int);\n'
  expect(parseMigration('0001_a.sql', text.replaceAll('\n', '\r\n'))).toEqual(parseMigration('0001_a.sql', text))
  expect(parseMigration('0001_a.sql', text).breaking).toBe(true)
})
