import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

export interface Execution {
  job_id: string
  nominal_at: Date
  attempt: number
  pid: number
  began_at: Date
  ended_at: Date | null
}

/**
 * What handlers really did, one line per time that one began, kept on the server of the test run, which nothing happens
 * to. It has no key, so that what must not happen twice can be seen twice.
 */
export class Ledger {
  readonly connection: pg.ClientConfig = inject('postgres')
  readonly table = `ledger_${randomBytes(6).toString('hex')}`
  readonly #pool = new pg.Pool({ ...this.connection, max: 2 })

  static async open(): Promise<Ledger> {
    const ledger = new Ledger()
    await ledger.#pool.query(
      `create table ${ledger.table} (job_id uuid, nominal_at timestamptz(3), attempt int, pid int, began_at timestamptz(3), ended_at timestamptz(3))`,
    )
    onTestFinished(async () => {
      await ledger.#pool.query(`drop table ${ledger.table}`)
      await ledger.#pool.end()
    })
    return ledger
  }

  async executions(where = 'true', values: unknown[] = []): Promise<Execution[]> {
    const { rows } = await this.#pool.query<Execution>(
      `select * from ${this.table} where ${where} order by began_at`,
      values,
    )
    return rows
  }

  async count(where = 'true', values: unknown[] = []): Promise<number> {
    const { rows } = await this.#pool.query<{ count: number }>(
      `select count(*)::int as count from ${this.table} where ${where}`,
      values,
    )
    return rows[0]?.count ?? 0
  }
}
