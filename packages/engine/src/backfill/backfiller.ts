import { BelfryError } from '../errors.ts'
import { isJobId, shardOfJob } from '../job/ids.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Bulk } from '../store/database.ts'
import { isOutage } from '../store/database-errors.ts'
import { type AdvanceDeps, advanceBackfills } from './advance-backfills.ts'
import { LookAhead } from './look-ahead.ts'
import { lookAtJobs } from './look-at-jobs.sql.ts'
import { OpenWalk } from './walk-open.sql.ts'

export interface BackfillerDeps extends Omit<AdvanceDeps, 'lookAhead'> {
  db: Bulk
  clock: Clock
  logger: Logger
  wakeups: Wakeups
}

/** Jobs that are taken further in one go. */
const BATCH = 20
const LONGEST_WAIT_MS = 1_000
/** Whoever holds the job for longer is passed over; the walk comes by again. */
const LOCK_TIMEOUT_MS = 100
/** Jobs that are remembered; of more the walk finds what there is to do. */
const MAX_JOBS = 10_000

/**
 * Takes backfills further, in the shards that this node owns. The ends of their runs say that there is room for the next; in
 * case nobody heard, a walk goes round the open ones, one step with each pulse that saw any. While there is no backfill it
 * sends nothing.
 */
export class Backfiller implements Step {
  readonly #deps: BackfillerDeps
  readonly #walk = new OpenWalk()
  readonly name = 'backfiller'
  readonly role = 'promoter'
  readonly #lookAhead = new LookAhead()
  #owned: ReadonlySet<number> = new Set()
  /** Jobs of whatever shard of which somebody said that they are being backfilled. */
  readonly #known = new Set<string>()
  readonly #told = new Set<string>()
  #mayWalk = false

  constructor(deps: BackfillerDeps) {
    this.#deps = deps
  }

  own(shards: readonly number[]): void {
    this.#owned = new Set(shards)
  }

  saw({ hasBackfills }: Pick<PulseAnswer, 'hasBackfills'>): boolean {
    if (!hasBackfills) this.#known.clear()
    this.#mayWalk = hasBackfills && this.#owned.size > 0
    return this.#mayWalk || this.#told.size > 0
  }

  /** A run of the job has ended, or a backfill of it was begun; answers whether this node has to look. */
  tell(jobId: string): boolean {
    if (!isJobId(jobId)) return false
    this.#know(jobId)
    if (!this.#owned.has(shardOfJob(jobId)) || this.#told.size >= MAX_JOBS) return false
    this.#told.add(jobId)
    return true
  }

  /** A run has ended here: if its job is being backfilled, whoever owns it may go on. */
  ended(jobId: string): void {
    if (this.#known.has(jobId)) this.#deps.wakeups.backfill(jobId)
  }

  async runOnce(): Promise<{ waitMs: number; changed: number }> {
    await this.#goRound()
    const told = [...this.#told].slice(0, BATCH)
    // Forgotten before they are looked at: what happens meanwhile is told again.
    for (const jobId of told) this.#told.delete(jobId)
    const open = new Map((await lookAtJobs(this.#deps.db, told)).map(({ jobId, hasWork }) => [jobId, hasWork]))
    let changed = 0
    for (const jobId of told.sort()) {
      if (!open.has(jobId)) this.#known.delete(jobId)
      if (open.get(jobId)) changed += await this.#advance(jobId)
    }
    return { waitMs: this.#told.size > 0 ? 0 : LONGEST_WAIT_MS, changed }
  }

  /** Finds what nobody has told of. It is told to all: whoever ended a run of it did not know, and will the next time. */
  async #goRound(): Promise<void> {
    if (!this.#mayWalk) return
    this.#mayWalk = false
    const { db, wakeups } = this.#deps
    for (const { jobId, hasWork } of await lookAtJobs(db, await this.#walk.next(db, this.#owned))) {
      this.#know(jobId)
      if (hasWork && !this.#told.has(jobId)) wakeups.backfill(jobId)
    }
  }

  #know(jobId: string): void {
    this.#known.add(jobId)
    for (const oldest of this.#known) {
      if (this.#known.size <= MAX_JOBS) break
      this.#known.delete(oldest)
    }
  }

  async #advance(jobId: string): Promise<number> {
    const { db, clock, wakeups, logger } = this.#deps
    try {
      const { ready, changed, hasMore } = await db.transaction(async (tx) => {
        await tx.setLockTimeout(LOCK_TIMEOUT_MS)
        return advanceBackfills(tx, { ...this.#deps, lookAhead: this.#lookAhead }, jobId, clock.now())
      })
      for (const run of ready) wakeups.ready(run)
      if (hasMore) this.tell(jobId)
      return changed
    } catch (error) {
      if (isOutage(error)) throw error
      // One job must not keep the others from theirs.
      if (!(error instanceof BelfryError && error.code === 'in_progress'))
        logger.warn('a backfill cannot be taken further', { jobId, error })
      return 0
    }
  }
}
