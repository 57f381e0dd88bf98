import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import { type Database, isConnectionLost, UnknownOutcome } from './database.ts'
import { migrate } from './migrator.ts'
import { ensureReaderRole } from './reader-role.ts'

const RETRY_MS = 500
/** Said again so often while the database is away. */
const SAY_EVERY = 20

export interface PreparedSchema {
  shards: number
  /** Why tenants' reads cannot run as a role of their own; null: they can. */
  missingWall: string | null
}

/**
 * Brings the schema up to date and answers its number of shards, which is fixed by whoever came first. Waits while the
 * database is away: a node may be started before it.
 */
export async function prepareSchema(db: Database, shards: number, logger: Logger): Promise<PreparedSchema> {
  for (let tries = 0; ; tries++) {
    try {
      return await once(db, shards, logger)
    } catch (error) {
      if (!(error instanceof UnknownOutcome) && !isConnectionLost(error) && !isStarting(error)) throw error
      if (tries % SAY_EVERY === 0) logger.warn('waiting for the database', { error })
      await pause(RETRY_MS)
    }
  }
}

async function once(db: Database, shards: number, logger: Logger): Promise<PreparedSchema> {
  const client = await db.connect()
  try {
    await migrate(client, { schema: db.schema, logger })
    const meta = `"${db.schema}".meta`
    await client.query(`insert into ${meta} (key, value) values ('shards', to_jsonb($1::int)) on conflict do nothing`, [
      shards,
    ])
    const { rows } = await client.query<{ shards: string }>(
      `select value #>> '{}' as shards from ${meta} where key = 'shards'`,
    )
    const missingWall = await ensureReaderRole(client, db.schema)
    if (missingWall !== null) logger.warn('reads of tenants have no second wall', { reason: missingWall })
    return { shards: Number(rows[0]?.shards), missingWall }
  } finally {
    await client.end().catch(() => {})
  }
}

/** The server is starting up, shutting down or recovering. */
const isStarting = (error: unknown): boolean => /^57P0|^53300/.test(String((error as { code?: unknown }).code ?? ''))
