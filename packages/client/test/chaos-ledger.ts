import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'

/** A time that a handler began. */
export interface Execution {
  run_id: string
  attempt: number
  worker: string
  /** The checkpoint that it found. */
  got: { attempt: number; step: number } | null
  /** The last step that it began to leave as a checkpoint, and the last that it was told is stored. */
  leaving: number | null
  left_step: number | null
  ended_at: Date | null
}

/** What a worker asked, and what it was answered. */
export interface Answered {
  worker: string
  call: 'lease' | 'heartbeat' | 'complete' | 'release'
  asked: {
    results?: { token: string; status: string }[]
    leases?: { token: string; checkpoint?: unknown; begun?: false }[]
  }
  told: {
    runs?: { token: string; runId: string; attempt: number; failures: number }[]
    results?: { token: string; outcome: string }[]
    leases?: { token: string; outcome: string }[]
  }
}

/**
 * What handlers did and what workers were told, kept where nothing happens to it. It has no key, so that what must not
 * happen twice can be seen twice.
 */
export class Ledger {
  readonly connection: pg.ClientConfig = inject('postgres')
  readonly table = `ledger_${randomBytes(6).toString('hex')}`
  readonly #pool = new pg.Pool({ ...this.connection, max: 1 })
  readonly #folder = mkdtempSync(join(tmpdir(), 'belfry-answers-'))

  static async open(): Promise<Ledger> {
    const ledger = new Ledger()
    await ledger.#pool.query(
      `create table ${ledger.table} (run_id text, attempt int, worker text, got json, leaving int, left_step int,
         began_at timestamptz, ended_at timestamptz)`,
    )
    await ledger.#pool.query(`create index on ${ledger.table} (run_id, attempt)`)
    onTestFinished(async () => {
      await ledger.#pool.query(`drop table ${ledger.table}`)
      await ledger.#pool.end()
      rmSync(ledger.#folder, { recursive: true })
    })
    return ledger
  }

  /** Where this worker writes down what it is answered. */
  answersOf(worker: string): string {
    return join(this.#folder, worker)
  }

  async executions(): Promise<Execution[]> {
    return (await this.#pool.query<Execution>(`select * from ${this.table} order by began_at`)).rows
  }

  answers(): Answered[] {
    return readdirSync(this.#folder).flatMap((name) => {
      const lines = readFileSync(join(this.#folder, name), 'utf8').split('\n')
      // What stands behind the last line end was being written when its worker was killed.
      return lines.slice(0, -1).map((line) => JSON.parse(line) as Answered)
    })
  }
}
