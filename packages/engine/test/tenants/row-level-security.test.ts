import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import type { ActiveRun } from '../../src/executors/handlers/active-run.ts'
import { Belfry } from '../../src/index.ts'
import { hash64 } from '../../src/job/ids.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { Reader } from '../../src/store/reader.ts'
import { ensureReaderRole } from '../../src/store/reader-role.ts'
import { allStatements, renderFor, type Statement } from '../../src/store/statement.ts'
import { at, MINUTE, startKit } from '../behaviour/kit.ts'
import { createDatabase } from '../database.ts'
import '../../src/audit/list-changes.sql.ts'

/** Two tenants that have something in every place where a job or a run can be. */
async function setup() {
  const t = await startKit()
  const readerOf = (walled: boolean) => {
    const options = { connection: inject('postgres'), schema: t.kit.schema, maxConnections: 2, logger: silentLogger }
    const reader = new Reader({ ...options, walled, isReplica: false })
    onTestFinished(() => reader.close())
    return reader
  }
  const readers = { walled: readerOf(true), open: readerOf(false) }
  await t.query(`insert into tenants (id, name) values (2, 'other')`)
  for (const tenant of ['default', 'other']) {
    const [view, once] = [await t.kit.tenant(tenant), { retry: { maxAttempts: 1 } }]
    const fail = (run: ActiveRun) => {
      run.log(`of ${tenant}`)
      throw new Error('no')
    }
    await t.kit.handle(`fails-${tenant}`, fail, { tenant })
    await view.jobs.create({ queue: `fails-${tenant}`, ...once })
    await view.jobs.create({ queue: 'idle' })
    await view.batches.create([{ queue: 'idle', payload: 1 }], {})
    await view.jobs.create({ queue: 'idle', delay: '1h', idempotencyKey: 'k' })
    const { jobId } = await view.jobs.create({
      queue: 'idle',
      cron: '* * * * *',
      overlap: 'allow',
      labels: { team: tenant },
    })
    await view.jobs.pause(jobId)
    t.kit.clock.advance(2 * MINUTE)
    await view.jobs.resume(jobId)
    await view.backfills.create(jobId, { from: at(-5 * MINUTE), to: at(0) })
    await view.pauses.create({ key: 'of nobody' })
    await t.query(
      `insert into run_payloads (nominal_at, job_id, tenant_id, shard, payload) select now(), gen_random_uuid(), id, 0, '1' from tenants where name = $1`,
      [tenant],
    )
    await t.query(
      `insert into checkpoints (nominal_at, job_id, attempt, shard, tenant_id, value) select now(), gen_random_uuid(), 1, 0, id, '1' from tenants where name = $1`,
      [tenant],
    )
    await view.workers.put('w', { queues: ['idle'] })
    await view.calendars.put('holidays', { days: ['2026-12-25'] })
    await view.secrets.put('token', 'x')
    await view.payloads.put(Buffer.from('x'), 'text/plain')
    await view.signingKeys.list()
    await t.query(
      `insert into api_keys (created_at, id, tenant_id, name, prefix, scopes, hash) select now(), gen_random_uuid(), id, 'k', 'bk', '{}', sha256(name::bytea) from tenants where name = $1`,
      [tenant],
    )
    await t.query(
      `insert into circuits (opened_at, probe_at, tenant_id, open_ms, failures, origin, reason) select now(), now(), id, 1, 1, 'o', 'r' from tenants where name = $1`,
      [tenant],
    )
  }
  await t.kit.settle()
  const read = (tenantId: number | null, text: string, values: unknown[] = [], walled = true) => {
    const reader = walled ? readers.walled : readers.open
    return reader.of(tenantId).query({ name: hash64(text), text, arrays: [], waitsForRows: false }, values)
  }
  const tables = await t.query<{ name: string; partition: boolean }>(
    `select c.relname as name, c.relispartition as partition from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = $1::regnamespace and c.relkind in ('r', 'p') and a.attname = 'tenant_id' order by 1`,
    [t.kit.schema],
  )
  return { ...t, read, tables }
}

/** What look-ups read, and the sealed or secret things that nobody reads through this role. */
const READABLE = [
  'attempt_logs',
  'attempts',
  'backfill_runs',
  'backfills',
  'batches',
  'calendars',
  'checkpoints',
  'dead_letters',
  'edges',
  'job_changes',
  'jobs',
  'limits',
  'pauses',
  'queues',
  'run_payloads',
  'runs',
  'skips',
  'specs',
  'timers',
  'workers',
]
const HIDDEN = ['api_keys', 'circuits', 'keys', 'payloads', 'secrets', 'signing_keys']

test('without any condition, a tenant sees its own rows of every table and nobody else sees any', async () => {
  const t = await setup()
  const whole = t.tables.filter(({ partition }) => !partition).map(({ name }) => name)
  expect(whole).toEqual([...READABLE, ...HIDDEN].sort())
  for (const table of READABLE) {
    const text = `select distinct tenant_id from "${t.kit.schema}".${table} order by 1`
    const all = await t.query<{ tenant_id: number }>(`select distinct tenant_id from ${table} order by 1`)
    expect(
      all.map((row) => row.tenant_id).filter((id) => id > 0),
      `${table} has rows of both`,
    ).toEqual([1, 2])
    // The system's own queue is everybody's.
    const shared = table === 'queues' ? [[0]] : []
    expect(await t.read(1, text), table).toEqual([...shared, [1]])
    expect(await t.read(2, text), table).toEqual([...shared, [2]])
    expect(await t.read(3, text), table).toEqual(shared)
    expect(await t.read(null, text), table).toEqual(shared)
  }
  for (const table of HIDDEN)
    await expect(t.read(1, `select 1 from "${t.kit.schema}".${table}`), table).rejects.toThrow(/permission denied/)
})

test('partitions, secrets of the installation and writing are closed to a tenant', async () => {
  const t = await setup()
  const partitions = t.tables.filter(({ partition }) => partition)
  expect(partitions.length).toBeGreaterThan(10)
  const others = ['meta', 'nodes', 'migrations', 'schedules']
  for (const name of [...partitions.map((one) => one.name), ...others])
    await expect(t.read(1, `select 1 from "${t.kit.schema}"."${name}"`), name).rejects.toThrow(/permission denied/)
  expect(await t.read(1, `select name from "${t.kit.schema}".tenants`)).toEqual([['default']])
  for (const text of [
    `update "${t.kit.schema}".jobs set tenant_id = 1`,
    `delete from "${t.kit.schema}".runs`,
    `insert into "${t.kit.schema}".tenants (id, name) values (9, 'x')`,
  ])
    await expect(t.read(1, text).catch((error) => Promise.reject(error.cause ?? error))).rejects.toThrow(
      /read-only|permission denied/,
    )
})

test('a look-up that forgot its condition still shows nothing of others', async () => {
  const t = await setup()
  const [foreign] = await t.query<{ id: string; shard: number }>('select id, shard from jobs where tenant_id = 2')
  const [letter] = await t.query<{ job_id: string; shard: number; at: string }>(
    'select job_id, shard, extract(epoch from nominal_at) * 1000 as at from dead_letters where tenant_id = 2',
  )
  const [backfill] = await t.query<{ id: string; job_id: string; shard: number; at: string }>(
    `select b.id, b.job_id, b.shard, extract(epoch from o.nominal_at) * 1000 as at
     from backfills b join backfill_runs o on o.backfill_id = b.id where b.tenant_id = 2`,
  )
  const [inf, last] = [Number.POSITIVE_INFINITY, 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  const first = '00000000-0000-0000-0000-000000000000'
  const job = [foreign?.shard, foreign?.id]
  const at = Number(letter?.at)
  // Each asks for what is the other tenant's, or for all there is.
  const calls: Record<string, unknown[]> = {
    get_job: [...job, 0],
    list_jobs: [1, last, null, null, null, 1_000, 1_000, first, null, null, -inf, inf, null],
    get_run: [letter?.shard, letter?.job_id, at, 0, 0],
    list_runs: [1, true, last, inf, true, inf, last, inf, 1_000_000, 1_000, null, null, null, 1_000, null, -inf, inf],
    list_runs_of_default: [
      ...[1, true, last, inf, true, inf, last, inf, 1_000_000, 1_000, null, null, null, 1_000, null, -inf, inf, 64],
    ],
    list_runs_of_job: [letter?.shard, letter?.job_id, 1, inf, 0, 1_000, null, null, null, 100, null, -inf, inf],
    get_logs: [letter?.shard, letter?.job_id, at, 0, 1],
    list_dead_letters: [1, inf, last, inf, null, null, null, 1_000, 1_000, -inf, inf],
    get_dead_letter: [1, letter?.shard, letter?.job_id, at],
    job_belongs_to_tenant: [...job, 1],
    run_belongs_to_tenant: [letter?.shard, letter?.job_id, 1, at],
    queue_depths: [1, 1_000],
    queue_depths_of_default: [1, 1_000],
    list_queues: [1, '', null, 100],
    list_changes: [1, 0, foreign?.id, 0, 0, 100],
    created_job: [...job, 1, 0],
    get_backfill: [backfill?.shard, backfill?.id, 1],
    list_backfills_of_job: [backfill?.shard, backfill?.job_id, 1, last, 100],
    backfill_of_run: [backfill?.shard, backfill?.job_id, Number(backfill?.at)],
  }
  const { rows: theirs } = await t.pool.query(
    `select id::text from jobs where tenant_id = 2 union select job_id::text from specs where tenant_id = 2
     union select job_id::text from attempts where tenant_id = 2 union select id::text from backfills where tenant_id = 2`,
  )
  const foreignIds = theirs.map((row) => row.id as string)
  for (const [name, values] of Object.entries(calls)) {
    const found = allStatements().find((one) => one.name === name) as Statement
    const text = withoutCondition(renderFor(t.kit.schema, found))
    expect(JSON.stringify(await t.read(1, text, values)), name).not.toMatch(new RegExp(foreignIds.join('|')))
    const asNobody = (await t.read(null, text, values)).flat().filter((value) => foreignIds.includes(String(value)))
    expect(asNobody, name).toEqual([])
    // Without the wall it says more: the condition is really gone.
    expect(await t.read(1, text, values, false), name).not.toEqual(await t.read(1, text, values))
  }
})

/** Takes every comparison with the tenant out of a statement. */
const withoutCondition = (text: string): string => text.replaceAll(/\b\w+\.tenant_id = (\$\d+)/g, '$1::int is not null')

test('many nodes that start at once find or make the role, in one schema and in several', async () => {
  const schemas = await Promise.all([1, 2, 3].map(() => createDatabase({ fresh: true })))
  for (const database of schemas) onTestFinished(() => database.drop())
  const clients = await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const client = new pg.Client(inject('postgres'))
      await client.connect()
      onTestFinished(() => client.end())
      return { client, schema: schemas[i % 3]?.schema as string }
    }),
  )
  const answers = await Promise.all(clients.map(({ client, schema }) => ensureReaderRole(client, schema)))
  expect(answers).toEqual(Array.from({ length: 12 }, () => null))
  expect(await Promise.all(clients.map(({ client, schema }) => ensureReaderRole(client, schema)))).toEqual(answers)
})

test('a database user that may not make roles gets a Belfry with one wall, which says so', async () => {
  const postgres = inject('postgres')
  const owner = new pg.Client(postgres)
  await owner.connect()
  onTestFinished(() => owner.end())
  const user = `plain_${Math.random().toString(36).slice(2, 10)}`
  await owner.query(`create role ${user} login password 'plain'`)
  await owner.query(`grant create on database "${postgres.database}" to ${user}`)
  onTestFinished(async () => {
    await owner.query(`drop schema if exists ${user} cascade`)
    await owner.query(`drop owned by ${user}`)
    await owner.query(`drop role ${user}`)
  })
  const belfry = await Belfry.start({ database: { ...postgres, user, password: 'plain' }, schema: user })
  onTestFinished(() => belfry.stop())
  const { ready, checks } = await belfry.readiness()
  expect(ready).toBe(true)
  expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual(['reader role', 'encryption key'])
  const tenant = belfry.tenant({ tenantId: 1, tenant: 'default', actor: 'test' })
  const { jobId } = await tenant.jobs.create({ queue: 'q', delay: '1h' })
  expect((await tenant.jobs.get(jobId)).status).toBe('active')
})
