import type pg from 'pg'
import type { Instant } from '../runtime/clock.ts'
import type { Database } from '../store/database.ts'
import { ServerClient } from '../store/server-client.ts'
import { statement } from '../store/statement.ts'

/** What the statements of a connection take for the time, if it was said; else the real time. */
export const CLOCK_OF_CONNECTION = `create or replace function clock() returns double precision language sql volatile as $clock$
  select coalesce(nullif(current_setting('belfry.clock', true), '')::float8, floor(extract(epoch from clock_timestamp()) * 1000)) $clock$`

const FOLLOWS = statement(
  'clock_follows_connections',
  `select position('current_setting' in p.prosrc) > 0 from pg_proc p where p.oid = 'belfry.clock()'::regprocedure`,
)

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
  const [row] = await db.query<[boolean]>(FOLLOWS, [])
  if (row?.[0]) return
  const client = await db.connect()
  try {
    await client.query('begin')
    // Of two kits on one schema one waits for the other.
    await client.query('select pg_advisory_xact_lock(4712)')
    await client.query(`set local search_path to "${db.schema}"`)
    await client.query(CLOCK_OF_CONNECTION)
    await client.query('commit')
  } finally {
    await client.end()
  }
}
