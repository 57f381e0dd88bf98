import { Lanes } from '../runtime/lanes.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Vital } from '../store/database.ts'
import { isContention, isOutage } from '../store/database-errors.ts'
import { liveAmong } from './heartbeat.sql.ts'
import { byLockOrder, type Fence, runKey } from './lease.ts'

const MAX_BATCH = 500
const LOCKED_PAUSE_MS = 20
const AWAY_PAUSE_MS = 200

interface LeaseWritesOptions<Item> {
  db: Vital
  logger: Logger
  lanes: number
  /** Answers the keys of the runs that were written. Items are in lock order. */
  write(items: readonly Item[]): Promise<ReadonlySet<string>>
  /** Written; or the lease is not live any more, or is not worth another try. */
  settle(item: Item, isWritten: boolean): void
  /** Whether what the database did not take is sent again. */
  isWorthIt(item: Item): boolean
}

/**
 * Writes about live leases, in batches. One whose row another transaction holds comes back after a pause, and no other waits for
 * it; while the database is away all of them come back. To write the same twice must be harmless.
 */
export class LeaseWrites<Item extends { lease: Fence }> {
  readonly #options: LeaseWritesOptions<Item>
  readonly #lanes: Lanes<Item>
  readonly #aside = new Set<Promise<void>>()

  constructor(options: LeaseWritesOptions<Item>) {
    this.#options = options
    this.#lanes = new Lanes({ lanes: options.lanes, maxBatch: MAX_BATCH, work: (batch) => this.#work(batch) })
  }

  push(item: Item): void {
    this.#lanes.push(item)
  }

  /** Ends when all that was pushed is settled. */
  async drained(): Promise<void> {
    await this.#lanes.drained()
    while (this.#aside.size > 0) {
      await Promise.all(this.#aside)
      await this.#lanes.drained()
    }
  }

  async #work(batch: Item[]): Promise<void> {
    const { db, logger, write, settle } = this.#options
    const items = batch.toSorted((a, b) => byLockOrder(a.lease, b.lease))
    try {
      const written = await write(items)
      const passed = items.filter(({ lease }) => !written.has(runKey(lease)))
      const live =
        passed.length === 0
          ? NONE
          : await liveAmong(
              db,
              passed.map(({ lease }) => lease),
            )
      // In the order in which they came: what has waited longest begins first.
      for (const item of batch) {
        const key = runKey(item.lease)
        if (live.has(key)) this.#again(item, LOCKED_PAUSE_MS)
        else settle(item, written.has(key))
      }
    } catch (error) {
      const mayPass = isOutage(error) || isContention(error)
      if (!mayPass) logger.error('what was said of leases was refused', { error, leases: items.length })
      for (const item of batch) {
        if (mayPass) this.#again(item, AWAY_PAUSE_MS)
        else settle(item, false)
      }
    }
  }

  #again(item: Item, afterMs: number): void {
    if (!this.#options.isWorthIt(item)) {
      this.#options.settle(item, false)
      return
    }
    const aside = pause(afterMs).then(() => {
      this.#aside.delete(aside)
      this.push(item)
    })
    this.#aside.add(aside)
  }
}

const NONE: ReadonlySet<string> = new Set()
