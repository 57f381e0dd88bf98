import pg from 'pg'
import { inject } from 'vitest'
import type { Migration } from '../src/store/migrator.ts'
import { loadMigrations } from '../src/store/migrator.ts'
import { type Days, giveBackSchema, makeSchema, takeSchema } from './schema-pool.ts'
import { FABRICATED } from './watch-moves.ts'

/** What the nodes of most tests make when they start: the kit's, and others with a clock that is moved by hand. */
export const KIT_DAYS: Days = { around: Date.UTC(2026, 0, 1), ahead: 2 }
export const NODE_DAYS: Days = { around: Date.UTC(2026, 0, 1), ahead: 14 }

/** The same of a node that lives today. */
export const today = (): Days => ({ around: Date.now(), ahead: 14 })

export interface TestDatabase {
  /** For `new pg.Client()`; its search path is the schema. */
  connection: pg.ClientConfig
  schema: string
  pool: pg.Pool
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
  /** Writes runs as no move of the program would leave them. */
  fabricate(text: string, values?: unknown[]): Promise<void>
  /** Closes the pool and gives the schema back. Whatever else worked in it has ended before. */
  drop(): Promise<void>
}

export interface TestDatabaseOptions {
  /** Those of the program unless given. */
  migrations?: Migration[]
  /** Makes the days that a node makes at its start: whoever starts one gets its schema sooner. */
  days?: Days
  /** A schema that nobody had before: for tests of what is made, or of plans, which look at more than rows. */
  fresh?: true
}

/** A schema on the server of the test run that is the caller's alone, with all migrations applied and otherwise empty. */
export async function createDatabase({ migrations, days, fresh }: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const own = migrations || fresh ? await makeSchema(migrations ?? (await loadMigrations())) : await takeSchema(days)
  const schema = own.name
  const connection: pg.ClientConfig = { ...inject('postgres'), options: `-c search_path=${schema}` }
  const pool = new pg.Pool({ ...connection, max: 8 })
  return {
    connection,
    schema,
    pool,
    query: async (text, values) => (await pool.query(text, values)).rows,
    fabricate: async (text, values) => {
      const client = await pool.connect()
      try {
        await client.query(`begin; ${FABRICATED}`)
        await client.query(text, values)
        await client.query('commit')
      } finally {
        // Closed, so that a transaction that failed ends with it.
        client.release(true)
      }
    },
    drop: async () => {
      await pool.end()
      await giveBackSchema(own)
    },
  }
}
