import pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { encoded } from './arrays.ts'
import { typeParsers } from './parsers.ts'
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

/** Connections that failed, that an operator ended, or that the database ended because nothing was said for too long. */
const CONNECTION_LOST = /^(08|57P0[1-5]|25P0[34])/
const LOST_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ENOENT', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'])

/** The database cannot be reached, or went away in the middle: what the statement did is unknown. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof BelfryError) return error.code === 'database_unavailable'
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string' && (CONNECTION_LOST.test(code) || LOST_CODES.has(code))) return true
  return /Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|^timeout expired$|Query read timeout/.test(
    error.message,
  )
}

const IN_PROGRESS = 'somebody else is just changing the same thing: try again'

/** A lock was not had within the transaction's own limit. */
export const isLockTimeout = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === '55P03'

/** The day that something is to be written to has not been made. */
export const isPartitionMissing = (error: unknown): boolean =>
  error instanceof Error &&
  (error as { code?: unknown }).code === '23514' &&
  /no partition of relation/.test(error.message)

/** A statement whose outcome is unknown, and the backend that may still be at work on it. */
export class UnknownOutcome extends BelfryError {
  readonly backendPid: number
  constructor(backendPid: number, cause: unknown) {
    super('database_unavailable', 'the connection to the database was lost; whether the call was done is unknown', {
      cause,
    })
    this.backendPid = backendPid
  }
}

const SIDE_CONNECTIONS = 2

/** How every connection of the engine is set up. */
export function connectionConfig(connection: string | pg.ClientConfig): pg.ClientConfig {
  const given: pg.ClientConfig = typeof connection === 'string' ? { connectionString: connection } : connection
  return {
    ...given,
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
  readonly #config: pg.ClientConfig
  #makePartitions: (() => Promise<void>) | null = null
  #closed = false

  constructor({ connection, schema, maxConnections, logger }: DatabaseOptions) {
    this.schema = schema
    this.#config = connectionConfig(connection)
    const pool = (max: number): pg.Pool => {
      const made = new pg.Pool({ ...this.#config, max, idleTimeoutMillis: 30_000 })
      made.on('error', (error) => logger.warn('an idle database connection was lost', { error: error.message }))
      made.on('connect', survive)
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

  async #send(pool: pg.Pool, statement: Statement, values: readonly unknown[]): Promise<Sent> {
    const client = await this.#borrow(pool)
    let failure: Error | undefined
    try {
      return await send(client, this.schema, statement, values)
    } catch (error) {
      if (isConnectionLost(error)) {
        failure = error as Error
        throw new UnknownOutcome(backendPidOf(client), error)
      }
      throw error
    } finally {
      client.release(failure)
    }
  }

  /** Says how a missing day is made: a node that slept for weeks finds none that is near. */
  onMissingPartition(make: () => Promise<void>): void {
    this.#makePartitions = make
  }

  /**
   * Runs `work` in one READ COMMITTED transaction. What it throws rolls back and is thrown on; only if a partition is
   * missing, it is made and `work` runs once more.
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

  async #transact<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const client = await this.#borrow(this.#pool)
    let failure: Error | undefined
    try {
      await client.query('begin')
      const result = await work(new ClientTransaction(client, this.schema))
      await client.query('commit')
      return result
    } catch (error) {
      if (isConnectionLost(error)) {
        failure = error as Error
        throw new UnknownOutcome(backendPidOf(client), error)
      }
      await client.query('rollback').catch((lost: Error) => {
        failure = lost
      })
      throw isLockTimeout(error) ? new BelfryError('in_progress', IN_PROGRESS, { cause: error }) : error
    } finally {
      client.release(failure)
    }
  }

  async #borrow(pool: pg.Pool): Promise<pg.PoolClient> {
    if (this.#closed) throw new BelfryError('stopped', 'Belfry has been stopped')
    try {
      return await pool.connect()
    } catch (error) {
      if (!isConnectionLost(error)) throw error
      throw new BelfryError('database_unavailable', 'the database cannot be reached', { cause: error })
    }
  }

  /** A connection of one's own, outside the pool: for listening, migrating and other long stays. */
  async connect(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#config, query_timeout: 0 })
    survive(client)
    await client.connect()
    return client
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([this.#pool.end(), this.#sidePool.end()])
  }
}

/**
 * A connection that breaks emits an error besides failing its statement, and the pool listens only while it is idle: with
 * nobody listening, the end of a database would end the whole process.
 */
export const survive = (client: pg.ClientBase): void => {
  client.on('error', () => {})
}

class ClientTransaction implements Transaction {
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
