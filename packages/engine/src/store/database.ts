import pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import { encoded } from './arrays.ts'
import {
  asToldToCallers,
  asUnreachable,
  isConnectionLost,
  isConnectionSpent,
  isContention,
  isLockTimeout,
  isPartitionMissing,
} from './database-errors.ts'
import { readDatabaseUrl, type ServerUse } from './database-url.ts'
import { typeParsers } from './parsers.ts'
import { ServerClient, type ServerConfig, Servers } from './server-client.ts'
import { renderFor, type Statement } from './statement.ts'

/** Anything statements can be sent through: the pool, one of its connections in a transaction, or a caller's own client. */
export interface Queryable {
  query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]>
  /** For statements that return nothing: how many rows the last part of it wrote. */
  execute(statement: Statement, values: readonly unknown[]): Promise<number>
}

/** A caller's `pg` client or pool client, in a transaction that the caller began. */
export interface CallerTransaction {
  query(config: {
    text: string
    values: unknown[]
    rowMode: 'array'
    types: unknown
  }): Promise<{ rows: unknown[][]; rowCount: number | null }>
}

export interface Transaction extends Queryable {
  /** Says to this transaction alone how long it may wait for a lock. */
  setLockTimeout(ms: number): Promise<void>
  /** What `work` throws undoes what it did, and nothing before it. Not to be nested. */
  undoable(work: () => Promise<void>): Promise<void>
}

/**
 * What the planner may not do on the engine's connections: a plan made while a table was empty would read it whole, or hash
 * it, long after it has grown. The statements' own shape (lateral look-ups by primary key) fixes the rest.
 */
const SESSION =
  '-c timezone=UTC -c datestyle=ISO -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off -c plan_cache_mode=force_generic_plan -c idle_in_transaction_session_timeout=5s'

/**
 * A database that says nothing for so long counts as gone: its machine, or the cable, may be, and nobody would say so.
 * Hundreds of times what the slowest statement takes. Connections outside of the pool (migrations) have no such limit.
 */
export const SILENT_MS = 10_000

const SIDE_CONNECTIONS = 2
/** Of two transactions that wait for each other one goes on, so the other one seldom meets it again. */
const MAX_TRIES = 4
const CONTENTION_PAUSE_MS = 10

/** How every connection of the engine is set up: for a pool as it is, otherwise for a `ServerClient`. */
export function connectionConfig(
  connection: string | pg.ClientConfig,
  use: ServerUse = 'writes',
): ServerConfig & { Client: new () => pg.ClientBase } {
  const given: pg.ClientConfig = typeof connection === 'string' ? { connectionString: connection } : connection
  const { connectionString, Client = ServerClient } = given as pg.ClientConfig & { Client?: typeof ServerClient }
  const read = connectionString === undefined ? { servers: [] } : readDatabaseUrl(connectionString, use)
  if (typeof read === 'string') throw new BelfryError('invalid_option', `the database's URL ${read}`)
  return {
    ...given,
    ...('url' in read ? { connectionString: read.url } : {}),
    servers: new Servers(use, read.servers),
    // The pool gives it what it was given itself, which its type does not say.
    Client: Client as unknown as new () => pg.ClientBase,
    options: given.options ? `${given.options} ${SESSION}` : SESSION,
    application_name: 'belfry',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    query_timeout: SILENT_MS,
    types: typeParsers as never,
  }
}

export interface DatabaseOptions {
  connection: string | pg.ClientConfig
  schema: string
  maxConnections: number
  logger: Logger
}

export class Database implements Queryable {
  readonly schema: string
  /**
   * For a statement beside a transaction that is under way (what a queue's number is, an interned schedule): on connections
   * of its own, since transactions that hold all others would wait for each other for ever.
   */
  readonly aside: Queryable
  readonly #pool: pg.Pool
  readonly #sidePool: pg.Pool
  readonly #config: ServerConfig
  #makePartitions: (() => Promise<void>) | null = null
  #closed = false

  constructor({ connection, schema, maxConnections, logger }: DatabaseOptions) {
    this.schema = schema
    this.#config = connectionConfig(connection)
    const pool = (max: number): pg.Pool => {
      const made = new pg.Pool({ ...this.#config, max, idleTimeoutMillis: 30_000 })
      made.on('error', (error) => logger.warn('an idle database connection was lost', { error: error.message }))
      return made
    }
    this.#pool = pool(maxConnections)
    this.#sidePool = pool(SIDE_CONNECTIONS)
    this.aside = {
      query: async <Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]) =>
        (await this.#send(this.#sidePool, statement, values)).rows as Row[],
      execute: async (statement, values) => (await this.#send(this.#sidePool, statement, values)).rowCount,
    }
  }

  async query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#send(this.#pool, statement, values)).rows as Row[]
  }

  async execute(statement: Statement, values: readonly unknown[]): Promise<number> {
    return (await this.#send(this.#pool, statement, values)).rowCount
  }

  #send(pool: pg.Pool, statement: Statement, values: readonly unknown[]): Promise<Sent> {
    return this.#repeatedly(pool, (client) => send(client, this.schema, statement, values))
  }

  /** Says how a missing day is made: a node that slept for weeks finds none that is near. */
  onMissingPartition(make: () => Promise<void>): void {
    this.#makePartitions = make
  }

  /**
   * Runs `work` in one READ COMMITTED transaction. What it throws rolls back and is thrown on. `work` runs again if another
   * transaction was in the way, unless it set a limit to that itself, and once more when a partition that was missing is made.
   */
  async transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    try {
      return await this.#transact(work)
    } catch (error) {
      if (this.#makePartitions === null || !isPartitionMissing(error)) throw error
      await this.#makePartitions()
      return this.#transact(work)
    }
  }

  #transact<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#repeatedly(this.#pool, async (client) => {
      const tx = new ClientTransaction(client, this.schema)
      await client.query('begin')
      try {
        const result = await work(tx)
        await client.query('commit')
        return result
      } catch (error) {
        if (!isConnectionLost(error)) await client.query('rollback')
        throw isLockTimeout(error) && tx.limitsItsWaits ? asToldToCallers(error) : error
      }
    })
  }

  /** Sends it through a connection of its own, and a few times more if another transaction was in the way. */
  async #repeatedly<Result>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      const client = await this.#borrow(pool)
      let failure: Error | undefined
      try {
        return await work(client)
      } catch (error) {
        if (isConnectionSpent(error)) failure = error as Error
        const isAgain = !(error instanceof BelfryError) && isContention(error) && tries < MAX_TRIES
        if (!isAgain) throw asToldToCallers(error, backendPidOf(client))
      } finally {
        client.release(failure)
      }
      await pause(tries * CONTENTION_PAUSE_MS)
    }
  }

  async #borrow(pool: pg.Pool): Promise<pg.PoolClient> {
    if (this.#closed) throw new BelfryError('stopped', 'Belfry has been stopped')
    try {
      return await pool.connect()
    } catch (error) {
      throw asUnreachable(error)
    }
  }

  /** A connection of one's own, outside the pool: for listening, migrating and other long stays. */
  async connect(): Promise<pg.Client> {
    const client = new ServerClient({ ...this.#config, query_timeout: 0 })
    await client.connect()
    return client
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([this.#pool.end(), this.#sidePool.end()])
  }
}

class ClientTransaction implements Transaction {
  /** Work that says how long it waits for a lock says it of all its tries. */
  limitsItsWaits = false
  readonly #client: pg.ClientBase
  readonly #schema: string

  constructor(client: pg.ClientBase, schema: string) {
    this.#client = client
    this.#schema = schema
  }

  async query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return (await send(this.#client, this.#schema, statement, values)).rows as Row[]
  }

  async execute(statement: Statement, values: readonly unknown[]): Promise<number> {
    return (await send(this.#client, this.#schema, statement, values)).rowCount
  }

  async setLockTimeout(ms: number): Promise<void> {
    this.limitsItsWaits = ms > 0
    await this.#client.query(`set local lock_timeout = ${Math.trunc(ms)}`)
  }

  async undoable(work: () => Promise<void>): Promise<void> {
    await this.#client.query('savepoint undoable')
    try {
      await work()
    } catch (error) {
      await this.#client.query('rollback to savepoint undoable')
      throw error
    }
  }
}

/** Sends statements through a caller's transaction. They stay unnamed: the connection is not ours to fill with plans. */
export function inCallerTransaction(caller: CallerTransaction, schema: string): Queryable {
  if (typeof caller?.query !== 'function') {
    throw new BelfryError('invalid_argument', 'tx must be a pg client with a query method, inside a transaction', {
      complaints: [{ path: 'tx', message: 'must be a pg client with a query method, inside a transaction' }],
    })
  }
  const sent = (statement: Statement, values: readonly unknown[]) =>
    caller.query({
      text: renderFor(schema, statement),
      values: encoded(statement.arrays, values),
      rowMode: 'array',
      types: typeParsers,
    })
  return {
    async query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
      return (await sent(statement, values)).rows as unknown as Row[]
    },
    async execute(statement: Statement, values: readonly unknown[]): Promise<number> {
      return (await sent(statement, values)).rowCount ?? 0
    },
  }
}

interface Sent {
  rows: readonly unknown[]
  rowCount: number
}

async function send(
  client: pg.ClientBase,
  schema: string,
  statement: Statement,
  values: readonly unknown[],
): Promise<Sent> {
  const { rows, rowCount } = await client.query({
    name: statement.name,
    text: renderFor(schema, statement),
    values: encoded(statement.arrays, values),
    rowMode: 'array',
  })
  return { rows, rowCount: rowCount ?? 0 }
}

const backendPidOf = (client: pg.ClientBase): number => (client as unknown as { processID?: number }).processID ?? 0
