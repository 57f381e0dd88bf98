import { BelfryError } from '../errors.ts'
import { isJobId, shardOfJob } from '../job/ids.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import { type Database, isConnectionLost } from '../store/database.ts'
import { type AdvanceDeps, advanceBackfills } from './advance-backfills.ts'
import { jobsWithWork } from './jobs-with-work.sql.ts'

export interface BackfillerDeps extends AdvanceDeps {
  db: Database
  clock: Clock
  logger: Logger
  wakeups: Wakeups
}

/** Jobs that are taken further in one go. */
const BATCH = 20
const LONGEST_WAIT_MS = 1_000
/** Whoever holds the job for longer is passed over; the pulse tells of it again. */
const LOCK_TIMEOUT_MS = 100

/**
 * Takes backfills further, in the shards that this node owns: told by the pulse which jobs have any, and by the ends of
 * their runs that there is room for the next. While there is no backfill it sends nothing.
 */
export class Backfiller implements Step {
  readonly #deps: BackfillerDeps
  #owned: ReadonlySet<number> = new Set()
  /** Jobs of whatever shard that have an open backfill, as the last pulse told, or somebody since. */
  #open = new Set<string>()
  readonly #told = new Set<string>()

  constructor(deps: BackfillerDeps) {
    this.#deps = deps
  }

  own(shards: readonly number[]): void {
    this.#owned = new Set(shards)
  }

  /** These jobs have open backfills; answers whether there is anything to look at here. */
  saw(jobIds: readonly string[]): boolean {
    this.#open = new Set(jobIds)
    for (const jobId of jobIds) this.tell(jobId)
    return this.#told.size > 0
  }

  /** A run of the job has ended, or a backfill of it was begun; answers whether this node has to look. */
  tell(jobId: string): boolean {
    if (!isJobId(jobId)) return false
    this.#open.add(jobId)
    if (!this.#owned.has(shardOfJob(jobId))) return false
    this.#told.add(jobId)
    return true
  }

  /** A run has ended here: if its job is being backfilled, whoever owns it may go on. */
  ended(jobId: string): void {
    if (this.#open.has(jobId)) this.#deps.wakeups.backfill(jobId)
  }

  async runOnce(): Promise<{ waitMs: number; changed: number }> {
    const { db } = this.#deps
    const told = [...this.#told].slice(0, BATCH)
    // Forgotten before they are looked at: what happens meanwhile is told again.
    for (const jobId of told) this.#told.delete(jobId)
    let changed = 0
    for (const jobId of (await jobsWithWork(db, told)).sort()) changed += await this.#advance(jobId)
    return { waitMs: this.#told.size > 0 ? 0 : LONGEST_WAIT_MS, changed }
  }

  async #advance(jobId: string): Promise<number> {
    const { db, clock, wakeups, logger } = this.#deps
    try {
      const { ready, changed, hasMore } = await db.transaction(async (tx) => {
        await tx.setLockTimeout(LOCK_TIMEOUT_MS)
        return advanceBackfills(tx, this.#deps, jobId, clock.now())
      })
      for (const run of ready) wakeups.ready(run)
      if (hasMore) this.tell(jobId)
      return changed
    } catch (error) {
      if (isConnectionLost(error)) throw error
      // One job must not keep the others from theirs.
      if (!(error instanceof BelfryError && error.code === 'in_progress'))
        logger.warn('a backfill cannot be taken further', { jobId, error })
      return 0
    }
  }
}
