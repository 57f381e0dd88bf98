import type { Logger } from '../runtime/logger.ts'
import type { Database } from './database.ts'
import { loadMigrations, migrate } from './migrator.ts'
import { ensureReaderRole } from './reader-role.ts'

export interface PreparedSchema {
  shards: number
  /** Why tenants' reads cannot run as a role of their own; null: they can. */
  missingWall: string | null
  /** The newest migration that this program knows. */
  known: number
}

/** Brings the schema up to date and answers its number of shards, which is fixed by whoever came first. */
export async function prepareSchema(db: Database, shards: number, logger: Logger): Promise<PreparedSchema> {
  const migrations = await loadMigrations()
  const client = await db.connect()
  try {
    await migrate(client, { schema: db.schema, migrations, logger })
    const meta = `"${db.schema}".meta`
    await client.query(`insert into ${meta} (key, value) values ('shards', to_jsonb($1::int)) on conflict do nothing`, [
      shards,
    ])
    const { rows } = await client.query<{ shards: string }>(
      `select value #>> '{}' as shards from ${meta} where key = 'shards'`,
    )
    const missingWall = await ensureReaderRole(client, db.schema)
    if (missingWall !== null) logger.warn('reads of tenants have no second wall', { reason: missingWall })
    return { shards: Number(rows[0]?.shards), missingWall, known: migrations.length }
  } finally {
    await client.end().catch(() => {})
  }
}
