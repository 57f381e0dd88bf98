import type pg from 'pg'
import type { Instant } from '../runtime/clock.ts'
import type { Database } from '../store/database.ts'
import { ServerClient } from '../store/server-client.ts'

/** What the statements of a connection take for the time, if it was said; else the real time. */
export const CLOCK_OF_CONNECTION = `select coalesce(nullif(current_setting('belfry.clock', true), '')::float8, floor(extract(epoch from clock_timestamp()) * 1000))`

/** A transaction that is undone forgets what was said in it. */
const UNDOES = /^rollback/i

/** Connections that say, before each statement, what time it is by this clock. The schema must be one of `followManualTime`. */
export function manualTime(database: string | pg.ClientConfig, clock: { now(): Instant }): pg.ClientConfig {
  class ManualTimeClient extends ServerClient {
    #said: Instant | null = null

    override query = ((...args: Parameters<pg.Client['query']>) => {
      const now = clock.now()
      // One connection does one thing after the other, so what is sent first is done first.
      if (now !== this.#said) super.query(`set belfry.clock = '${now}'`, () => {})
      const [sent] = args as unknown[]
      this.#said = typeof sent === 'string' && UNDOES.test(sent) ? null : now
      return super.query(...args)
    }) as pg.Client['query']
  }
  const config: pg.PoolConfig = typeof database === 'string' ? { connectionString: database } : { ...database }
  return { ...config, Client: ManualTimeClient } as pg.ClientConfig
}

/** The database's clock follows what connections say. Connections that say nothing have the real time. */
export async function followManualTime(db: Database): Promise<void> {
  const client = await db.connect()
  try {
    await client.query('begin')
    await client.query('select pg_advisory_xact_lock(4712)')
    await client.query(
      `create or replace function "${db.schema}".clock() returns double precision language sql volatile as $clock$ ${CLOCK_OF_CONNECTION} $clock$`,
    )
    await client.query('commit')
  } finally {
    await client.end()
  }
}
