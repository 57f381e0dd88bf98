import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { dayOf, partitionOf } from '../src/history/partition.ts'
import { Partitioner } from '../src/history/partitioner.ts'
import { type Instant, ManualClock } from '../src/runtime/clock.ts'
import { silentLogger } from '../src/runtime/logger.ts'
import { pause } from '../src/runtime/pause.ts'
import { Database } from '../src/store/database.ts'
import { loadMigrations, type Migration, migrate } from '../src/store/migrator.ts'
import { ensureReaderRole } from '../src/store/reader-role.ts'
import { CLOCK_OF_CONNECTION } from '../src/testing/manual-time.sql.ts'
import { fingerprintOf, quoted, rowsOf, type TableState, tablesOf, usersOf } from './schema-state.ts'
import { FABRICATED, movesSchema, watchMoves } from './watch-moves.ts'

/**
 * Schemas for tests. Making one costs a quarter of a second and more, emptying one a twentieth of that: so a schema that a
 * test is done with is emptied and kept for the next test of the same worker process.
 *
 * Nobody sees what another test left. Every row goes and what the migrations inserted is put back; days that were made on
 * the way go as well. Then the schema must be, object by object, what it was when it was made. If it is not, if somebody
 * still works in it, or if it has statistics, it is dropped.
 */
export interface TestSchema {
  readonly name: string
  /** What it was made like; null: it is not kept. */
  readonly kept: Kept | null
}

interface Kept {
  kind: string
  fingerprint: string
  tables: ReadonlySet<string>
  /** By table, as JSON: what the migrations inserted. */
  rows: ReadonlyMap<string, string>
}

/** The days that a node makes when it starts at this instant. */
export interface Days {
  around: Instant
  ahead: number
}

const LOCK_TIMEOUT_MS = 10_000
const MAX_LOOKS = 40
const BETWEEN_LOOKS_MS = 5

const idle = new Map<string, TestSchema[]>()
let connections: pg.Pool | undefined

/** An empty schema with all migrations; with days, also as a node leaves it that was there before. */
export async function takeSchema(days: Days | undefined): Promise<TestSchema> {
  const kind = days ? `${dayOf(days.around)} ${days.ahead}` : ''
  const known = idle.get(kind)?.pop()
  if (known) return known
  const { name } = await makeSchema(await loadMigrations())
  if (days) await makeDays(name, days)
  return withClient(async (client) => {
    if (days) await ensureReaderRole(client, name)
    const made = await tablesOf(client, name)
    const tables = new Set(made.map((table) => table.name))
    const filled = made.filter(({ holds }) => holds !== 'nothing').map((table) => table.name)
    const rows = await rowsOf(client, name, filled)
    return { name, kept: { kind, fingerprint: await fingerprintOf(client, name), tables, rows } }
  })
}

/** A schema that no test had before and none gets after. */
export async function makeSchema(migrations: Migration[]): Promise<TestSchema> {
  const name = `test_${inject('run')}_${randomBytes(6).toString('hex')}`
  await withClient(async (client) => {
    await migrate(client, { schema: name, migrations, logger: silentLogger })
    if (migrations.length === 0) return
    await watchMoves(client, name, movesSchema(inject('run')))
    // Most tests move their clocks by hand: a schema that follows those need not be changed for each of them.
    await client.query(`set search_path to ${quoted(name)}; ${CLOCK_OF_CONNECTION}; reset search_path`)
  })
  return { name, kept: null }
}

export async function giveBackSchema(schema: TestSchema): Promise<void> {
  await withClient(async (client) => {
    if (schema.kept !== null && (await isAsBefore(client, schema.name, schema.kept))) {
      const { kind } = schema.kept
      idle.set(kind, [...(idle.get(kind) ?? []), schema])
    } else {
      await client.query(`drop schema if exists ${quoted(schema.name)} cascade`)
    }
  })
}

async function isAsBefore(client: pg.ClientBase, schema: string, kept: Kept): Promise<boolean> {
  if (!(await isLeftAlone(client, schema))) return false
  const tables = await tablesOf(client, schema)
  const added = tables.filter(({ name }) => !kept.tables.has(name))
  if (added.some(({ name }) => partitionOf(name) === null)) return false
  const filled = tables.filter((table) => table.holds !== 'nothing' && !added.includes(table))
  const toTruncate = filled.filter(({ holds }) => holds === 'much')
  const nameOf = (name: string) => `${quoted(schema)}.${quoted(name)}`
  const all = (of: readonly TableState[]) => of.map(({ name }) => nameOf(name)).join(', ')
  await client.query(
    [
      'begin',
      FABRICATED,
      ...(added.length > 0 ? [`drop table ${all(added)}`] : []),
      ...(toTruncate.length > 0 ? [`truncate ${all(toTruncate)} restart identity`] : []),
      ...filled.filter(({ holds }) => holds === 'little').map(({ name }) => `delete from ${nameOf(name)}`),
      ...[...kept.rows].map(([name, rows]) => {
        const into = nameOf(name)
        return `insert into ${into} select * from json_populate_recordset(null::${into}, ${pg.escapeLiteral(rows)})`
      }),
      'commit',
    ].join(';'),
  )
  return (await fingerprintOf(client, schema)) === kept.fingerprint
}

/** A connection that was just closed takes a moment to go. Whoever stays longer was forgotten. */
async function isLeftAlone(client: pg.ClientBase, schema: string): Promise<boolean> {
  for (let tries = 0; tries < MAX_LOOKS; tries++) {
    if ((await usersOf(client, schema)) === 0) return true
    await pause(BETWEEN_LOOKS_MS)
  }
  return false
}

async function makeDays(schema: string, { around, ahead }: Days): Promise<void> {
  const db = new Database({ connection: inject('postgres'), schema, logger: silentLogger })
  const clock = new ManualClock(around)
  await new Partitioner({ db, clock, logger: silentLogger, daysAhead: ahead }).ensure().finally(() => db.close())
}

/** Connections that live as long as the worker: they know the catalogue already. */
async function withClient<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
  connections ??= new pg.Pool({
    ...inject('postgres'),
    options: `-c lock_timeout=${LOCK_TIMEOUT_MS}`,
    allowExitOnIdle: true,
  }).on('error', () => {})
  const client = await connections.connect()
  let failure: Error | undefined
  try {
    return await work(client)
  } catch (error) {
    // Whatever it was in the middle of, the next one does not go on with it.
    failure = error as Error
    throw error
  } finally {
    client.release(failure)
  }
}
