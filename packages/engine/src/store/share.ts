import pg from 'pg'
import { BelfryError } from '../errors.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Turnstile } from '../runtime/turnstile.ts'
import { ClientTransaction, mustNotWait, type Sent, send, type Waits } from './client-transaction.ts'
import type { CONNECTIONS } from './connection-budget.ts'
import {
  asToldToCallers,
  asUnreachable,
  inProgress,
  isConnectionLost,
  isConnectionSpent,
  isContention,
  isLockTimeout,
  isPartitionMissing,
} from './database-errors.ts'
import type { Queryable, Transaction } from './queryable.ts'
import type { ServerConfig } from './server-client.ts'
import type { Statement } from './statement.ts'

/** Of two transactions that wait for each other one goes on, so the other one seldom meets it again. */
const MAX_TRIES = 4
const CONTENTION_PAUSE_MS = 10

/** The kinds of work that have connections of their own. */
export type ShareName = Extract<keyof typeof CONNECTIONS, 'vital' | 'work' | 'callers' | 'bulk' | 'aside'>

export interface ShareOptions<Name extends ShareName> {
  name: Name
  connections: number
  schema: string
  config: ServerConfig
  logger: Logger
  waits: Waits
  /** Of those who wait for the same row. */
  turnstile: Turnstile
  makePartitions(): Promise<boolean>
}

/** Transactions that change rows which others may hold. They say which: of one row no more than two wait at a time. */
export interface InTurn {
  /** As `transaction`; a third who would wait for one of these rows is told `in_progress`. */
  transactionOn<Result>(rows: readonly string[], work: (tx: Transaction) => Promise<Result>): Promise<Result>
}

/** Connections for one kind of work. Its name is part of its type: an agent that needs one share takes no other. */
export class Share<Name extends ShareName> implements Queryable, InTurn {
  readonly name: Name
  readonly schema: string
  readonly #options: ShareOptions<Name>
  readonly #pool: pg.Pool
  #closed = false

  constructor(options: ShareOptions<Name>) {
    const { name, connections, schema, config, logger } = options
    this.name = name
    this.schema = schema
    this.#options = options
    this.#pool = new pg.Pool({ ...config, max: connections, idleTimeoutMillis: 30_000 })
    this.#pool.on('error', (error) => logger.warn('an idle database connection was lost', { error: error.message }))
  }

  async query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#send(statement, values)).rows as Row[]
  }

  async execute(statement: Statement, values: readonly unknown[]): Promise<number> {
    return (await this.#send(statement, values)).rowCount
  }

  async #send(statement: Statement, values: readonly unknown[]): Promise<Sent> {
    mustNotWait(statement, this.#options.waits)
    return this.#repeatedly((client) => send(client, this.schema, statement, values))
  }

  /**
   * Runs `work` in one READ COMMITTED transaction. What it throws rolls back and is thrown on. `work` runs again if another
   * transaction was in the way, unless that took as long as it may wait, and once more when a partition that was missing is made.
   */
  transaction<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    return this.#orWithPartitions(() => this.#transact(work, () => {}))
  }

  async transactionOn<Result>(rows: readonly string[], work: (tx: Transaction) => Promise<Result>): Promise<Result> {
    const visit = await this.#options.turnstile.enter(rows)
    if (visit === null) throw inProgress()
    try {
      return await this.#orWithPartitions(() => this.#transact(work, visit.moved))
    } finally {
      visit.leave()
    }
  }

  async #orWithPartitions<Result>(transact: () => Promise<Result>): Promise<Result> {
    try {
      return await transact()
    } catch (error) {
      if (!isPartitionMissing(error) || !(await this.#options.makePartitions())) throw error
      return transact()
    }
  }

  #transact<Result>(work: (tx: Transaction) => Promise<Result>, onAnswer: () => void): Promise<Result> {
    return this.#repeatedly(async (client) => {
      await client.query('begin')
      try {
        const { schema } = this
        const { waits } = this.#options
        const result = await work(new ClientTransaction({ client, schema, waits, onAnswer }))
        await client.query('commit')
        return result
      } catch (error) {
        if (!isConnectionLost(error)) await client.query('rollback')
        throw error
      }
    })
  }

  /** Sends it through a connection of its own, and a few times more if another transaction was in the way. */
  async #repeatedly<Result>(work: (client: pg.PoolClient) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries++) {
      const client = await this.#borrow()
      let failure: Error | undefined
      try {
        return await work(client)
      } catch (error) {
        if (isConnectionSpent(error)) failure = error as Error
        const isAgain = !(error instanceof BelfryError) && isContention(error) && !isLockTimeout(error)
        if (!isAgain || tries === MAX_TRIES) throw asToldToCallers(error, backendPidOf(client))
      } finally {
        client.release(failure)
      }
      await pause(tries * CONTENTION_PAUSE_MS)
    }
  }

  async #borrow(): Promise<pg.PoolClient> {
    if (this.#closed) throw new BelfryError('stopped', 'Belfry has been stopped')
    try {
      return await this.#pool.connect()
    } catch (error) {
      throw asUnreachable(error)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#pool.end()
  }
}

const backendPidOf = (client: pg.ClientBase): number => (client as unknown as { processID?: number }).processID ?? 0
