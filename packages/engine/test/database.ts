import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { silentLogger } from '../src/runtime/logger.ts'
import { loadMigrations, type Migration, migrate } from '../src/store/migrator.ts'

export interface TestDatabase {
  /** For `new pg.Client()`; its search path is the schema. */
  connection: pg.ClientConfig
  schema: string
  pool: pg.Pool
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
  /** Drops the schema and closes the pool. */
  drop(): Promise<void>
}

/** A schema of its own on the server of the test run, with all migrations applied unless others are given. */
export async function createDatabase({ migrations }: { migrations?: Migration[] } = {}): Promise<TestDatabase> {
  const schema = `test_${randomBytes(6).toString('hex')}`
  const connection: pg.ClientConfig = { ...inject('postgres'), options: `-c search_path=${schema}` }
  const pool = new pg.Pool({ ...connection, max: 8 })
  const client = await pool.connect()
  try {
    await migrate(client, { schema, migrations: migrations ?? (await loadMigrations()), logger: silentLogger })
  } finally {
    client.release()
  }
  return {
    connection,
    schema,
    pool,
    query: async (text, values) => (await pool.query(text, values)).rows,
    drop: async () => {
      await pool.query(`drop schema if exists ${schema} cascade`)
      await pool.end()
    },
  }
}
