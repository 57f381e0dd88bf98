import type pg from 'pg'
import { hash64 } from '../job/ids.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Database } from '../store/database.ts'
import { dropPartition } from './drop-partition.ts'
import { listPartitions } from './list-partitions.sql.ts'
import {
  boundsOf,
  dayOf,
  PARTITIONED_TABLES,
  type Partition,
  type PartitionedTable,
  partitionName,
} from './partition.ts'
import { attach, createLike, isAttached, keptBetween, lockKept, moveFromKept } from './partition-ddl.sql.ts'
import { inShortTransaction, isBusy, LOCK_TIMEOUT_MS } from './short-transaction.ts'

const HOUR_MS = 3_600_000
/** Nothing is in a hurry: two weeks of days are there. Each further try may hold up claims for the lock timeout. */
const BUSY_WAIT_MS = 600_000
/** Makers wait for each other; they hold nothing while they do. */
const MAKER_WAIT_MS = 5_000
/** More than this is not moved while everybody waits; such a day stays in `specs_kept`. */
const MAX_MOVED = 10_000

const MAX_TRIES = 20
const BETWEEN_TRIES_MS = 100

export interface PartitionerDeps {
  db: Database
  clock: Clock
  logger: Logger
  /** Two weeks unless given. */
  daysAhead?: number | undefined
}

const DAYS_AHEAD = 14

/**
 * Makes the days of history before they come. Any node may do it at any time: makers take turns by an advisory lock, and a
 * day is made and attached in one transaction, so a crash leaves nothing behind.
 *
 * A day is made as a plain table and attached: attaching locks its parent in a mode that readers and writers do not notice,
 * where `create … partition of` would queue behind an open reader, and every finish behind it. Only `specs` has a default
 * partition, which attaching must lock against everybody; with a reader in the way it gives up after the lock timeout, and
 * nothing is lost, since `specs_kept` takes what has no day.
 */
export class Partitioner {
  readonly name = 'partitioner'
  readonly #deps: PartitionerDeps
  #making: Promise<PartitionedTable[]> | null = null

  constructor(deps: PartitionerDeps) {
    this.#deps = deps
  }

  /** When this returns, yesterday to two weeks ahead can be written. Callers at the same time share one try. */
  async ensure(): Promise<void> {
    await this.#ensureOnce()
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const busy = await this.#ensureOnce()
    return { waitMs: busy.length === 0 ? HOUR_MS : BUSY_WAIT_MS }
  }

  /** Removes a day and all that is in it. Waits for nobody longer than the lock timeout: then it is busy. */
  async drop(table: PartitionedTable, day: number): Promise<'dropped' | 'busy' | 'gone'> {
    return dropPartition(this.#deps.db, { table, day: dayOf(day) }, async () => {})
  }

  #ensureOnce(): Promise<PartitionedTable[]> {
    this.#making ??= this.#makeMissing().finally(() => {
      this.#making = null
    })
    return this.#making
  }

  /** Answers the tables that can be written but lack a day because somebody was in the way. */
  async #makeMissing(): Promise<PartitionedTable[]> {
    const { db, logger } = this.#deps
    const present = new Set((await listPartitions(db, db.schema)).map(partitionName))
    const missing = this.#wanted().filter((partition) => !present.has(partitionName(partition)))
    if (missing.length === 0) return []
    return db.apart(async (client) => {
      const busy: PartitionedTable[] = []
      for (const table of PARTITIONED_TABLES) {
        const ofTable = missing.filter((partition) => partition.table === table)
        if (ofTable.length === 0) continue
        try {
          await this.#makeInTurn(client, table, ofTable)
        } catch (error) {
          if (table !== 'specs' || !isBusy(error)) throw error
          logger.info('days of specs could not be made: somebody reads them', { days: ofTable.map(partitionName) })
          busy.push(table)
        }
      }
      return busy
    })
  }

  #wanted(): Partition[] {
    const today = dayOf(this.#deps.clock.now())
    const days = Array.from({ length: (this.#deps.daysAhead ?? DAYS_AHEAD) + 2 }, (_, i) => today + (i - 1) * DAY_MS)
    return PARTITIONED_TABLES.flatMap((table) => days.map((day) => ({ table, day })))
  }

  /**
   * Tries again when somebody was in the way: each try gives up after the lock timeout, so nobody queues behind it for long.
   * Specs can be written without their day, so they are left to the next round instead.
   */
  async #makeInTurn(client: pg.Client, table: PartitionedTable, wanted: Partition[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.#make(client, table, wanted)
        return
      } catch (error) {
        if (table === 'specs' || tries === MAX_TRIES || !isBusy(error)) throw error
        await pause(BETWEEN_TRIES_MS)
      }
    }
  }

  async #make(client: pg.Client, table: PartitionedTable, wanted: Partition[]): Promise<void> {
    const { schema } = this.#deps.db
    await inShortTransaction(client, async () => {
      await client.query(`set local lock_timeout = ${MAKER_WAIT_MS}`)
      await client.query('select pg_advisory_xact_lock($1)', [hash64(`belfry partitions of ${schema}`)])
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      const { rows } = await client.query<{ name: string }>(isAttached(table), [schema, wanted.map(partitionName)])
      const made = new Set(rows.map(({ name }) => name))
      const missing = wanted.filter((partition) => !made.has(partitionName(partition)))
      for (const partition of table === 'specs' ? await this.#movable(client, missing) : missing) {
        await client.query(createLike(schema, partition))
        if (table === 'specs') await this.#moveFromKept(client, partition)
        await client.query(attach(schema, partition))
      }
    })
  }

  /** Those days of specs of which `specs_kept` holds few enough rows. */
  async #movable(client: pg.Client, partitions: Partition[]): Promise<Partition[]> {
    if (partitions.length === 0) return []
    // Attaching would take this lock anyway; taken first, no further spec can come between the move and the attachment.
    await client.query(lockKept(this.#deps.db.schema))
    const movable: Partition[] = []
    for (const partition of partitions) {
      const { from, to } = boundsOf(partition)
      const { rows } = await client.query<{ found: number }>(keptBetween(this.#deps.db.schema), [
        from,
        to,
        MAX_MOVED + 1,
      ])
      if ((rows[0]?.found ?? 0) <= MAX_MOVED) movable.push(partition)
      else
        this.#deps.logger.warn('a day of specs stays undivided: too many would have to move', {
          day: partitionName(partition),
        })
    }
    return movable
  }

  /** A spec whose day was not there when it was written goes where it belongs. */
  async #moveFromKept(client: pg.Client, partition: Partition): Promise<void> {
    const { from, to } = boundsOf(partition)
    await client.query(moveFromKept(this.#deps.db.schema, partition), [from, to])
  }
}
