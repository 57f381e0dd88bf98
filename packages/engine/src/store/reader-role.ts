import type { MigrationClient } from './migrator.ts'

/** Sees one tenant's rows, through the policies of the schema. Nobody logs in as it; one role serves all schemas. */
export const READER_ROLE = 'belfry_reader'

/**
 * What a look-up may read: tables with a policy. Never keys, secrets, payloads or `meta`, which hold what no answer shows;
 * and no partition, since policies hold for the table that a statement names.
 */
const READABLE_TABLES = [
  'attempt_logs',
  ...['jobs', 'specs', 'timers', 'runs', 'attempts', 'dead_letters', 'skips', 'job_changes', 'queues', 'tenants'],
  ...['run_payloads'],
  ...['workers', 'checkpoints', 'calendars'],
  ...['backfills', 'backfill_runs'],
  ...['pauses', 'limits'],
  ...['edges', 'batches'],
] as const

/** Somebody else made or granted the same at this moment. */
const AT_ONCE = new Set(['42710', '23505', 'XX000', '40001', '40P01'])
const MAX_TRIES = 20

/**
 * Makes the role and gives it its rights; any number of nodes may do so at once. Null: it can be used. Otherwise why not:
 * a database user without the right to make roles still gets a Belfry that works, with one wall instead of two.
 */
export async function ensureReaderRole(client: MigrationClient, schema: string): Promise<string | null> {
  for (let tries = 1; ; tries++) {
    try {
      if (!(await isReady(client, schema))) await grant(client, schema)
      return (await mayBecome(client)) ? null : `this database user may not become the role ${READER_ROLE}`
    } catch (error) {
      const { code, message } = error as { code?: string; message: string }
      if (code === undefined || /^(08|57)/.test(code)) throw error
      if (AT_ONCE.has(code) && tries < MAX_TRIES) continue
      return `the role ${READER_ROLE} cannot be made: ${message}`
    }
  }
}

async function isReady(client: MigrationClient, schema: string): Promise<boolean> {
  if (!(await exists(client))) return false
  const { rows } = await client.query(
    `select has_schema_privilege($1, $2, 'usage') and bool_and(has_table_privilege($1, format('%I.%I', $2::text, t.name), 'select')) as ready
     from unnest($3::text[]) as t (name)`,
    [READER_ROLE, schema, READABLE_TABLES],
  )
  return (rows[0] as { ready: boolean }).ready && (await mayBecome(client))
}

async function exists(client: MigrationClient): Promise<boolean> {
  return (await client.query('select from pg_roles where rolname = $1', [READER_ROLE])).rows.length > 0
}

async function grant(client: MigrationClient, schema: string): Promise<void> {
  if (!(await exists(client))) await client.query(`create role ${READER_ROLE} nologin`)
  if (!(await mayBecome(client))) await client.query(`grant ${READER_ROLE} to current_user`)
  const tables = READABLE_TABLES.map((table) => `"${schema}".${table}`).join(', ')
  await client.query(`grant usage on schema "${schema}" to ${READER_ROLE}`)
  await client.query(`grant select on ${tables} to ${READER_ROLE}`)
}

/** Asked by trying: what it takes differs between versions of PostgreSQL. */
async function mayBecome(client: MigrationClient): Promise<boolean> {
  try {
    await client.query(`begin; set local role ${READER_ROLE}; rollback`)
    return true
  } catch (error) {
    await client.query('rollback')
    if ((error as { code?: string }).code === '42501') return false
    throw error
  }
}
