import { type BelfryOptions, readOptions } from './options.ts'
import { awaitDatabase } from './store/await-database.ts'
import { Database } from './store/database.ts'
import { startEmbedded } from './store/embedded/embedded-server.ts'
import { prepareSchema } from './store/prepare-schema.ts'

/** Brings the schema up to date and leaves: what a node does first, without becoming one. Waits for a database that is away. */
export async function bringUpToDate(options: Pick<BelfryOptions, 'database' | 'dataDir' | 'logger'>): Promise<void> {
  const { database, dataDir, schema, shards, logger } = readOptions(options)
  const embedded = database === null ? await startEmbedded({ dataDir, logger }) : null
  const connection = database ?? embedded?.connection ?? {}
  const db = new Database({ connection, schema, logger })
  try {
    await awaitDatabase(logger, () => prepareSchema(db, shards, logger))
  } finally {
    await db.close()
    await embedded?.stop()
  }
}
