import type pg from 'pg'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Database } from '../store/database.ts'
import { channelOf, type Wakeups } from './wakeups.sql.ts'

/** At most ten messages a second per node. */
const EVERY_MS = 100

/**
 * Listens to the other nodes and tells them, on a connection of its own: a notification inside a busy transaction would
 * serialise commits. While it is broken the pulse and the sweep carry on alone.
 */
export class Notifier implements Step {
  readonly name = 'notifier'
  readonly #deps: { db: Database; wakeups: Wakeups; logger: Logger; hasOthers(): boolean }
  #client: pg.Client | null = null

  constructor(deps: { db: Database; wakeups: Wakeups; logger: Logger; hasOthers(): boolean }) {
    this.#deps = deps
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const { wakeups, hasOthers } = this.#deps
    this.#client ??= await this.#connect()
    const message = wakeups.take()
    if (message !== null && hasOthers()) await this.send(message)
    return { waitMs: EVERY_MS }
  }

  async send(message: string): Promise<void> {
    await this.#client?.query('select pg_notify($1, $2)', [channelOf(this.#deps.db.schema), message])
  }

  async close(): Promise<void> {
    const client = this.#client
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<pg.Client> {
    const { db, wakeups, logger } = this.#deps
    const client = await db.connect()
    client.on('notification', ({ payload }) => wakeups.receive(payload ?? ''))
    client.on('error', (error) => {
      logger.warn('the connection for wake-ups was lost', { error: error.message })
      if (this.#client === client) this.#client = null
    })
    try {
      await client.query(`listen "${channelOf(db.schema)}"`)
    } catch (error) {
      // It is tried again on another connection; this one would stay open with nobody to close it.
      await client.end().catch(() => {})
      throw error
    }
    return client
  }
}
