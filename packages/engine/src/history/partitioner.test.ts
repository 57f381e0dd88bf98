import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../test/database.ts'
import { jobIdLowerBound, newJobId } from '../job/ids.ts'
import { ManualClock } from '../runtime/clock.ts'
import { silentLogger } from '../runtime/logger.ts'
import { systemRandom } from '../runtime/random.ts'
import { Database } from '../store/database.ts'
import { migrate } from '../store/migrator.ts'
import { Partitioner } from './partitioner.ts'

const DAY = 86_400_000
/** A lock is given up after 100 ms; the rest is for a machine that runs other tests at the same time. */
const LONGEST_MS = 3_000
const HOUR = 3_600_000
const NOW = Date.UTC(2026, 10, 15, 13, 30)

async function setup({ schema }: { schema?: string } = {}) {
  const database = await createDatabase(schema === undefined ? {} : { migrations: [] })
  onTestFinished(() => database.drop())
  const connect = async () => {
    const client = new pg.Client(inject('postgres'))
    await client.connect()
    onTestFinished(() => client.end())
    await client.query("select set_config('search_path', $1, false)", [`"${db.schema.replaceAll('"', '""')}"`])
    return client
  }
  const open = () => {
    const made = new Database({
      connection: inject('postgres'),
      schema: schema ?? database.schema,
      logger: silentLogger,
    })
    onTestFinished(() => made.close())
    return made
  }
  const db = open()
  const admin = await connect()
  if (schema !== undefined) {
    await migrate(admin, { schema, logger: silentLogger })
    await admin.query("select set_config('search_path', $1, false)", [`"${schema.replaceAll('"', '""')}"`])
    const quoted = `"${schema.replaceAll('"', '""')}"`
    onTestFinished(() => database.pool.query(`drop schema ${quoted} cascade`).then(() => {}))
  }
  const clock = new ManualClock(NOW)
  const partitionsOf = async (table: string) => {
    const { rows } = await admin.query(
      `select child.relname as name from pg_inherits i join pg_class child on child.oid = i.inhrelid
       where i.inhparent = $1::regclass order by 1`,
      [table],
    )
    return rows.map((row: { name: string }) => row.name)
  }
  const finish = (client: pg.ClientBase, at: number, tenant = 1) =>
    client.query(
      `insert into attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final)
       values (to_timestamp($1::float8), to_timestamp($1::float8), to_timestamp($1::float8), $2, $3, 1, 1, 1, 0, 1, 0, true, true)`,
      [at / 1000, newJobId(0, at, systemRandom), tenant],
    )
  const specify = (client: pg.ClientBase, at: number) => {
    const jobId = newJobId(0, at, systemRandom)
    const insert = `insert into specs (updated_at, job_id, tenant_id, version, shard, name, definition) values (now(), $1, 1, 1, 0, 'a', '{}')`
    return client.query(insert, [jobId]).then(() => jobId)
  }
  const partitioner = new Partitioner({ db, clock, logger: silentLogger })
  return { db, open, admin, connect, clock, partitioner, partitionsOf, finish, specify }
}

test('history can be written from yesterday to two weeks ahead, and an hour later is soon enough to look again', async () => {
  const t = await setup()
  await expect(t.finish(t.admin, NOW)).rejects.toThrow('no partition of relation')
  expect(await t.partitioner.runOnce()).toEqual({ waitMs: HOUR })

  const names = await t.partitionsOf('attempts')
  expect(names).toHaveLength(16)
  expect([names[0], names[1], names.at(-1)]).toEqual(['attempts_20261114', 'attempts_20261115', 'attempts_20261129'])
  expect(await t.partitionsOf('skips')).toHaveLength(16)
  expect(await t.partitionsOf('attempt_logs')).toHaveLength(16)
  expect(await t.partitionsOf('specs')).toHaveLength(17)

  for (let day = -1; day <= 14; day++) await t.finish(t.admin, NOW + day * DAY)
  await t.finish(t.admin, Date.UTC(2026, 10, 30) - 1)
  await expect(t.finish(t.admin, Date.UTC(2026, 10, 30))).rejects.toThrow('no partition of relation')
  const { rows } = await t.admin.query(`select count(*)::int from attempts_20261129`)
  expect(rows[0].count).toBe(2)
})

test('a day has every index of its table', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  const indexes = async (table: string) =>
    (
      await t.admin.query(`select indexdef from pg_indexes where schemaname = $1 and tablename = $2`, [
        t.db.schema,
        table,
      ])
    ).rows
      .map(({ indexdef }: { indexdef: string }) => indexdef.replace(/^.* USING/, ''))
      .sort()
  for (const table of ['attempts', 'skips', 'attempt_logs', 'specs']) {
    expect(await indexes(`${table}_20261115`)).toEqual(await indexes(table))
  }
})

test('a day that passes adds a day ahead and keeps the old ones', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  t.clock.advance(DAY)
  await t.partitioner.ensure()
  expect(await t.partitionsOf('attempts')).toHaveLength(17)
})

test('when nothing is missing the check is one query and no connection', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  let queries = 0
  const counting = new Proxy(t.db, {
    get: (target, key) => {
      if (key === 'schema') return target.schema
      if (key !== 'query') throw new Error(`the check used ${String(key)}`)
      queries++
      return target.query.bind(target)
    },
  })
  await new Partitioner({ db: counting, clock: t.clock, logger: silentLogger }).ensure()
  expect(queries).toBe(1)
})

test('many nodes that look at once all find everything made', async () => {
  const t = await setup()
  const nodes = Array.from({ length: 6 }, () => new Partitioner({ db: t.open(), clock: t.clock, logger: silentLogger }))
  await Promise.all(nodes.flatMap((node) => [node.ensure(), node.ensure()]))
  expect(await t.partitionsOf('attempts')).toHaveLength(16)
  expect(await t.partitionsOf('specs')).toHaveLength(17)
})

test('a schema may be called anything', async () => {
  const t = await setup({ schema: `Odd "one", $& it's; drop` })
  await t.partitioner.ensure()
  await t.finish(t.admin, NOW)
  expect(await t.partitionsOf('attempts')).toHaveLength(16)
  expect(await t.partitioner.drop('attempts', NOW)).toBe('dropped')
  expect(await t.partitionsOf('attempts')).toHaveLength(15)
})

test('a reader in an open transaction does not keep the days of history from being made', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  const reader = await t.connect()
  await reader.query('begin')
  await reader.query('select count(*) from attempts')
  t.clock.advance(5 * DAY)
  await t.partitioner.ensure()
  expect(await t.partitionsOf('attempts')).toHaveLength(21)
})

test('a reader of specs costs them their new day for a while, and nothing else', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  const reader = await t.connect()
  await reader.query('begin')
  await reader.query('select count(*) from specs')
  t.clock.advance(DAY)

  const stop = new AbortController()
  const writer = await t.connect()
  const longest = longestInsert(stop.signal, async () => void (await t.specify(writer, NOW)))
  const { waitMs } = await t.partitioner.runOnce()
  stop.abort()
  expect(waitMs).toBeLessThan(HOUR)
  expect(await longest).toBeLessThan(LONGEST_MS)
  expect(await t.partitionsOf('attempts')).toHaveLength(17)
  expect(await t.partitionsOf('specs')).toHaveLength(17)

  await reader.query('commit')
  expect(await t.partitioner.runOnce()).toEqual({ waitMs: HOUR })
  expect(await t.partitionsOf('specs')).toHaveLength(18)
})

test('a spec that was written before its day was there moves into it', async () => {
  const t = await setup()
  const [early, late, far] = [Date.UTC(2026, 10, 15), Date.UTC(2026, 10, 16) - 1, NOW + 100 * DAY]
  const jobs = [await t.specify(t.admin, early), await t.specify(t.admin, late), await t.specify(t.admin, far)]
  await t.partitioner.ensure()
  const inTable = async (table: string) =>
    (await t.admin.query(`select job_id from ${table} order by job_id`)).rows.map(
      ({ job_id }: { job_id: string }) => job_id,
    )
  expect(await inTable('specs_20261115')).toEqual(jobs.slice(0, 2))
  expect(await inTable('specs_kept')).toEqual([jobs[2]])
})

test('days are made although somebody was in the way for longer than the lock timeout', async () => {
  const t = await setup()
  const holder = await t.connect()
  await holder.query('begin')
  await holder.query('lock table attempts in share update exclusive mode')
  const waits = async () =>
    (await t.admin.query(`select from pg_locks where relation = 'attempts'::regclass and not granted`)).rows.length > 0
  const making = t.partitioner.ensure()
  while (!(await waits()));
  while (await waits());
  // One try has given up by now.
  await holder.query('rollback')
  await making
  expect(await t.partitionsOf('attempts')).toHaveLength(16)
})

test('the first id of a day belongs to that day', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  const bound = jobIdLowerBound(Date.UTC(2026, 10, 16))
  await t.admin.query(
    `insert into specs (updated_at, job_id, tenant_id, version, shard, definition) values (now(), $1, 1, 1, 0, '{}')`,
    [bound],
  )
  const { rows } = await t.admin.query('select job_id from specs_20261116')
  expect(rows).toEqual([{ job_id: bound }])
})

test('a dropped day is gone with its rows, and dropping it again says so', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  await t.finish(t.admin, NOW)
  expect(await t.partitioner.drop('attempts', NOW)).toBe('dropped')
  expect((await t.admin.query('select count(*)::int from attempts')).rows[0].count).toBe(0)
  expect(await t.partitioner.drop('attempts', NOW)).toBe('gone')
})

for (const read of [
  'select count(*) from attempts_20261114',
  'select count(*) from attempts',
  'select from attempts limit 0',
]) {
  test(`an open reader (${read}) makes dropping busy and holds up no finish`, async () => {
    const t = await setup()
    await t.partitioner.ensure()
    const reader = await t.connect()
    await reader.query('begin')
    await reader.query(read)

    const writer = await t.connect()
    const stop = new AbortController()
    const longest = longestInsert(stop.signal, async () => void (await t.finish(writer, NOW)))
    for (let i = 0; i < 5; i++) expect(await t.partitioner.drop('attempts', NOW - DAY)).toBe('busy')
    stop.abort()
    expect(await longest).toBeLessThan(LONGEST_MS)

    await reader.query('commit')
    expect(await t.partitioner.drop('attempts', NOW - DAY)).toBe('dropped')
  })
}

test('a day can be dropped while finishes go on', async () => {
  const t = await setup()
  await t.partitioner.ensure()
  const writer = await t.connect()
  const stop = new AbortController()
  let inserted = 0
  const longest = longestInsert(stop.signal, async () => {
    await t.finish(writer, NOW)
    inserted++
  })
  expect(await t.partitioner.drop('attempts', NOW - DAY)).toBe('dropped')
  stop.abort()
  expect(await longest).toBeLessThan(LONGEST_MS)
  expect((await t.admin.query('select count(*)::int from attempts')).rows[0].count).toBe(inserted)
})

/** Inserts one after the other until told to stop; answers how long the slowest took, in milliseconds. */
async function longestInsert(signal: AbortSignal, insert: () => Promise<void>): Promise<number> {
  let longest = 0
  await Promise.resolve()
  do {
    const began = performance.now()
    await insert()
    longest = Math.max(longest, performance.now() - began)
  } while (!signal.aborted)
  return longest
}
