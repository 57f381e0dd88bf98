import type pg from 'pg'
import { encoded } from './arrays.ts'
import type { Transaction } from './queryable.ts'
import { renderFor, type Statement } from './statement.ts'

/** What the transactions of a share may do with rows that another transaction holds. */
export type Waits = 'may wait' | 'only within a limit'

export class ClientTransaction implements Transaction {
  readonly #client: pg.ClientBase
  readonly #schema: string
  readonly #onAnswer: () => void
  #waits: Waits

  constructor(options: { client: pg.ClientBase; schema: string; waits: Waits; onAnswer: () => void }) {
    this.#client = options.client
    this.#schema = options.schema
    this.#waits = options.waits
    this.#onAnswer = options.onAnswer
  }

  async query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#send(statement, values)).rows as Row[]
  }

  async execute(statement: Statement, values: readonly unknown[]): Promise<number> {
    return (await this.#send(statement, values)).rowCount
  }

  async #send(statement: Statement, values: readonly unknown[]): Promise<Sent> {
    mustNotWait(statement, this.#waits)
    const sent = await send(this.#client, this.#schema, statement, values)
    this.#onAnswer()
    return sent
  }

  async setLockTimeout(ms: number): Promise<void> {
    this.#waits = ms > 0 ? 'may wait' : 'only within a limit'
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

/** A statement that stands in the wrong share is found by the first test that sends it. */
export function mustNotWait({ name, waitsForRows }: Statement, waits: Waits): void {
  if (waitsForRows && waits === 'only within a limit')
    throw new Error(`${name} may wait for rows: it belongs to the share of callers, or after a lock timeout`)
}

export interface Sent {
  rows: readonly unknown[]
  rowCount: number
}

export async function send(
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
