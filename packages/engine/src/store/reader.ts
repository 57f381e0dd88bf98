import pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { connectionConfig, type Queryable } from './database.ts'
import { asToldToCallers, asUnreachable, isConnectionLost } from './database-errors.ts'
import type { ServerUse } from './database-url.ts'
import { AS_OF } from './ping.sql.ts'
import { READER_ROLE } from './reader-role.ts'
import { renderFor, type Statement } from './statement.ts'

export interface ReaderOptions {
  connection: string | pg.ClientConfig
  schema: string
  maxConnections: number
  logger: Logger
  /** False: the role is not to be had, and statements' own conditions are the only wall. */
  walled: boolean
  isReplica: boolean
}

/**
 * A list takes its rows in the order of an index and stops at its limit. A bitmap would first gather all that a tenant has, which
 * looks cheap to the planner while its statistics are old. And the plan does not depend on what is asked for, so it is made
 * once: over all days of history, making it took five times as long as a page of runs.
 */
const READING = '-c enable_bitmapscan=off -c plan_cache_mode=force_generic_plan'

export function readerConfig(
  connection: string | pg.ClientConfig,
  use: ServerUse,
): ReturnType<typeof connectionConfig> {
  const config = connectionConfig(connection, use)
  return { ...config, application_name: 'belfry reader', options: `${config.options} ${READING}` }
}

/**
 * What tenants read, on connections of their own. Each read is a transaction as a role that sees the rows of one tenant
 * and of no other, whatever the statement asks for; its four parts are sent together, so it takes one round trip.
 */
export class Reader {
  readonly #options: ReaderOptions
  readonly #pool: pg.Pool
  #closed = false

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#pool = new pg.Pool({
      ...readerConfig(options.connection, options.isReplica ? 'reads' : 'fresh reads'),
      max: options.maxConnections,
      idleTimeoutMillis: 30_000,
      pipeline: true,
    })
    this.#pool.on('error', (error) =>
      options.logger.warn('an idle connection for reads was lost', { error: error.message }),
    )
  }

  get walled(): boolean {
    return this.#options.walled
  }

  /** Reads as this tenant. Null is nobody, who sees nothing. */
  of(tenantId: number | null): Queryable {
    const send = (statement: Statement, values: readonly unknown[]) => this.#read(tenantId, statement, values)
    return {
      query: async <Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]) =>
        (await send(statement, values)).rows as unknown as Row[],
      execute: async (statement, values) => (await send(statement, values)).rowCount ?? 0,
    }
  }

  /** How old the answers are, if they come from a replica; null: they are of now. */
  async asOf(): Promise<Instant | null> {
    if (!this.#options.isReplica) return null
    const [row] = (await this.#read(null, AS_OF, [])).rows
    return (row?.[0] as Instant | undefined) ?? null
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#pool.end()
  }

  async #read(tenantId: number | null, statement: Statement, values: readonly unknown[]): Promise<pg.QueryArrayResult> {
    const client = await this.#borrow()
    let lost: Error | undefined
    try {
      // Not awaited one by one: the client sends them at once. After a failure the commit is a rollback.
      const [, result] = await Promise.all([
        client.query(this.#beginAs(tenantId)),
        client.query({
          name: statement.name,
          text: renderFor(this.#options.schema, statement),
          values: values as unknown[],
          rowMode: 'array',
        }),
        client.query('commit'),
      ])
      return result
    } catch (error) {
      if (isConnectionLost(error)) lost = error as Error
      else {
        // The others of the three may still be under way.
        await client.query('rollback').catch((broken: Error) => {
          lost = broken
        })
      }
      throw asToldToCallers(error)
    } finally {
      client.release(lost)
    }
  }

  #beginAs(tenantId: number | null): string {
    if (!this.#options.walled) return 'begin read only'
    const tenant = tenantId === null ? '' : Math.trunc(tenantId)
    return `begin read only; set local role ${READER_ROLE}; select set_config('belfry.tenant', '${tenant}', true)`
  }

  async #borrow(): Promise<pg.PoolClient> {
    if (this.#closed) throw new BelfryError('stopped', 'Belfry has been stopped')
    try {
      return await this.#pool.connect()
    } catch (error) {
      throw asUnreachable(error)
    }
  }
}
