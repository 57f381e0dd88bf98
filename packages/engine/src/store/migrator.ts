import { createHash } from 'node:crypto'
import { BelfryError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { loadMigrations, type Migration, migrationLabel } from './migrations.ts'
import { schemaTooNew } from './schema-state.sql.ts'

export { loadMigrations, type Migration } from './migrations.ts'

/** What the migrator needs of a `pg` client: one connection, because it holds transactions. */
export interface MigrationClient {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

export interface MigrateOptions {
  schema: string
  /** Those of this program unless given. */
  migrations?: Migration[]
  logger: Logger
}

const OLDEST_SERVER = 15

interface AppliedMigration {
  number: number
  name: string
  breaking: boolean
  checksum: string
}

/**
 * Brings a schema up to date. Any number of nodes may call this at once: each migration is one transaction under one
 * lock, looked at again inside, so it is applied once and wholly or not at all. A schema that is newer than this program
 * is accepted unless one of the migrations it does not know is breaking; a migration that was changed after it had been
 * applied never is.
 */
export async function migrate(client: MigrationClient, options: MigrateOptions): Promise<{ applied: number[] }> {
  const migrations = options.migrations ?? (await loadMigrations())
  await checkServer(client)
  const found = await readApplied(client, options.schema)
  if (found === null) await transaction(client, options.schema, () => prepare(client, options.schema))
  check(found ?? [], migrations, options)

  const known = new Set(found?.map(({ number }) => number))
  const applied: number[] = []
  for (const migration of migrations) {
    if (known.has(migration.number)) continue
    const isNew = await transaction(client, options.schema, () => applyOnce(client, migration, migrations, options))
    if (isNew) applied.push(migration.number)
  }
  return { applied }
}

/** Migrations of an older server would fail somewhere in the middle, with words about a detail. */
async function checkServer(client: MigrationClient): Promise<void> {
  const { rows } = await client.query(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as version",
  )
  const { number, version } = rows[0] as { number: number; version: string }
  if (number >= OLDEST_SERVER * 10_000) return
  throw new BelfryError(
    'migration_failed',
    `this database is PostgreSQL ${version}, and Belfry needs ${OLDEST_SERVER} or newer`,
  )
}

async function prepare(client: MigrationClient, schema: string): Promise<void> {
  // Looked for first, because `if not exists` asks for the right to create even when there is nothing to create.
  const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [schema])
  if (rows.length === 0) await client.query(`create schema ${quoteName(schema)}`)
  await client.query(
    'create table if not exists migrations (' +
      'number integer primary key, name text not null, breaking boolean not null, checksum text not null, ' +
      'applied_at timestamptz not null default now())',
  )
}

async function applyOnce(
  client: MigrationClient,
  migration: Migration,
  migrations: Migration[],
  options: MigrateOptions,
): Promise<boolean> {
  const found = (await readApplied(client, options.schema)) ?? []
  check(found, migrations, options)
  if (found.some(({ number }) => number === migration.number)) return false

  await client.query(migration.sql).catch((cause: unknown) => {
    throw failed(migration, cause)
  })
  const { number, name, breaking, checksum } = migration
  await client.query('insert into migrations (number, name, breaking, checksum) values ($1, $2, $3, $4)', [
    number,
    name,
    breaking,
    checksum,
  ])
  options.logger.info('a migration was applied', { schema: options.schema, migration: migrationLabel(migration) })
  return true
}

async function readApplied(client: MigrationClient, schema: string): Promise<AppliedMigration[] | null> {
  const table = `${quoteName(schema)}.migrations`
  const { rows } = await client.query('select to_regclass($1) is not null as present', [table])
  if (!(rows[0] as { present: boolean }).present) return null
  const applied = await client.query(`select number, name, breaking, checksum from ${table} order by number`)
  return applied.rows as AppliedMigration[]
}

function check(applied: AppliedMigration[], migrations: Migration[], { schema, logger }: MigrateOptions): void {
  const known = new Map(migrations.map((migration) => [migration.number, migration]))
  for (const one of applied) {
    const ours = known.get(one.number)
    if (!ours || ours.checksum === one.checksum) continue
    throw new BelfryError(
      'migration_failed',
      `migration ${migrationLabel(ours)} is not the one that was applied to schema "${schema}" ` +
        `(there it is ${migrationLabel(one)}, checksum ${one.checksum.slice(0, 8)}, here ${ours.checksum.slice(0, 8)}); ` +
        'an applied migration must not be changed: put the file back as it was and add a new one',
    )
  }
  const unknown = applied.filter(({ number }) => !known.has(number))
  const breaking = unknown.find((one) => one.breaking)
  const [newest, ours] = [unknown.at(-1), migrations.at(-1)]
  if (breaking && newest) {
    throw schemaTooNew(schema, {
      newest: migrationLabel(newest),
      known: ours ? migrationLabel(ours) : 'none',
      needed: migrationLabel(breaking),
    })
  }
  if (newest) {
    logger.debug('the schema is newer than this program, which can work with it', {
      schema,
      newest: migrationLabel(newest),
    })
  }
}

async function transaction<T>(client: MigrationClient, schema: string, work: () => Promise<T>): Promise<T> {
  // Read committed, so that what is read after the lock is what the holder before us committed.
  await client.query('begin isolation level read committed')
  try {
    await client.query("select set_config('lock_timeout', '0', true), set_config('statement_timeout', '0', true)")
    await client.query('select pg_advisory_xact_lock($1)', [lockKey(schema)])
    await client.query(`set local search_path to ${quoteName(schema)}`)
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    // What went wrong is the error to tell; if the connection is gone, there is nothing to roll back.
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function lockKey(schema: string): string {
  const bytes = createHash('sha256').update(`belfry migrations of ${schema}`).digest()
  return bytes.readBigInt64BE(0).toString()
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

function failed(migration: Migration, cause: unknown): BelfryError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const message = `migration ${migrationLabel(migration)} failed: ${reason}${whereIn(migration.sql, cause)}`
  return new BelfryError('migration_failed', message, { cause })
}

/** The line that PostgreSQL points to. It points to none if the data was in the way: then its message names the table. */
function whereIn(sql: string, cause: unknown): string {
  const position = Number((cause as { position?: string } | null)?.position ?? 0)
  if (position === 0) return ''
  const number = sql.slice(0, position - 1).split('\n').length
  return ` (at line ${number}: ${sql.split('\n')[number - 1]?.trim().slice(0, 120)})`
}
