import type pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { Turnstile } from '../runtime/turnstile.ts'
import { encoded } from './arrays.ts'
import type { Waits } from './client-transaction.ts'
import { CONNECTIONS } from './connection-budget.ts'
import { readDatabaseUrl, type ServerUse } from './database-url.ts'
import { typeParsers } from './parsers.ts'
import type { Queryable, Transaction } from './queryable.ts'
import { ServerClient, type ServerConfig, Servers } from './server-client.ts'
import { type InTurn, Share, type ShareName } from './share.ts'
import { renderFor, type Statement } from './statement.ts'

export type { Queryable, Transaction } from './queryable.ts'

/** A caller's `pg` client or pool client, in a transaction that the caller began. */
export interface CallerTransaction {
  query(config: {
    text: string
    values: unknown[]
    rowMode: 'array'
    types: unknown
  }): Promise<{ rows: unknown[][]; rowCount: number | null }>
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

/** For so long a statement may wait for a lock that another transaction holds, unless its transaction says how long. */
const LOCK_TIMEOUT_MS = 1_000
/** Bulk work waits for bulk work, which may take seconds; that is no outage yet. */
const BULK_PATIENCE_MS = 30_000
/** Of those who wait for the same row, here: the row may be held for long. */
const MOST_WAITING = 2

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
  logger: Logger
}

/** Pulse; heartbeats, marks, ends and give-backs of leases; promotions and claims. */
export type Vital = Share<'vital'>
/** Statements beside a transaction that is under way (what a queue's number is, an interned schedule). */
export type Aside = Share<'aside'>
/** Redrives, backfills, calls of thousands of jobs, purges. */
export type Bulk = Share<'bulk'>

/**
 * The connections of a node, in shares: each kind of work waits only for its own kind. Its own statements and transactions
 * are those of the share for `work`: they pass over rows that others hold, or say how long they wait.
 */
export class Database implements Queryable {
  readonly schema: string
  readonly vital: Vital
  /** What may wait for rows that other transactions hold. Nothing goes through it without saying which rows those are. */
  readonly callers: InTurn
  readonly bulk: Bulk
  readonly aside: Aside
  readonly #work: Share<'work'>
  readonly #shares: readonly { close(): Promise<void> }[]
  readonly #config: ServerConfig
  #apart: Promise<unknown> = Promise.resolve()
  #makePartitions: (() => Promise<void>) | null = null

  constructor({ connection, schema, logger }: DatabaseOptions) {
    this.schema = schema
    this.#config = connectionConfig(connection)
    const patient = { ...this.#config, options: `${this.#config.options} -c lock_timeout=${LOCK_TIMEOUT_MS}` }
    const turnstile = new Turnstile(MOST_WAITING)
    const share = <Name extends ShareName>(name: Name, waits: Waits, config: ServerConfig) =>
      new Share({
        ...{ name, waits, config, schema, logger, turnstile, connections: CONNECTIONS[name] },
        makePartitions: () => this.#makeMissingPartitions(),
      })
    const callers = share('callers', 'may wait', patient)
    this.vital = share('vital', 'only within a limit', this.#config)
    this.callers = callers
    this.bulk = share('bulk', 'may wait', { ...patient, connectionTimeoutMillis: BULK_PATIENCE_MS })
    this.aside = share('aside', 'only within a limit', patient)
    this.#work = share('work', 'only within a limit', patient)
    this.#shares = [this.vital, callers, this.bulk, this.aside, this.#work]
  }

  query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return this.#work.query(statement, values)
  }

  execute(statement: Statement, values: readonly unknown[]): Promise<number> {
    return this.#work.execute(statement, values)
  }

  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#work.transaction(work)
  }

  /** Says how a missing day is made: a node that slept for weeks finds none that is near. */
  onMissingPartition(make: () => Promise<void>): void {
    this.#makePartitions = make
  }

  async #makeMissingPartitions(): Promise<boolean> {
    await this.#makePartitions?.()
    return this.#makePartitions !== null
  }

  /** A connection of one's own, outside the shares: for listening, migrating and other long stays. */
  async connect(): Promise<pg.Client> {
    const client = new ServerClient({ ...this.#config, query_timeout: 0 })
    await client.connect()
    return client
  }

  /** On a connection of its own, one after the other: what names tables that are known only now would fill a share's with prepared statements. */
  apart<Result>(work: (client: pg.Client) => Promise<Result>): Promise<Result> {
    const done = this.#apart.then(async () => {
      const client = await this.connect()
      try {
        return await work(client)
      } finally {
        await client.end().catch(() => {})
      }
    })
    this.#apart = done.catch(() => {})
    return done
  }

  async close(): Promise<void> {
    await Promise.all(this.#shares.map((share) => share.close()))
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
