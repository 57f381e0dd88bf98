import { BelfryError } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Transaction, Vital } from '../store/database.ts'
import { type LockedTimer, lockTimer } from '../timers/lock-timer.sql.ts'
import { type DecideDeps, type Decided, decideJob } from './decide-job.sql.ts'

export interface PromoteAloneDeps extends DecideDeps {
  db: Vital
  clock: Clock
  wakeups: Wakeups
  /** Understands and plans a job that was created by SQL. */
  plan(tx: Transaction, timer: LockedTimer): Promise<{ afterCommit(): void }>
}

/** Long enough to get a turn at a job that is triggered without pause; short, since others wait behind it. */
const LOCK_TIMEOUT_MS = 100
const NOTHING: Decided = { ready: [], asked: [], timer: null }

/** Decides one job in a transaction of its own, under the timer's lock. */
export class PromoteAlone {
  readonly #deps: PromoteAloneDeps

  constructor(deps: PromoteAloneDeps) {
    this.#deps = deps
  }

  /** A job that somebody holds for longer is left to the next sweep. */
  async promote(shard: number, jobId: string): Promise<void> {
    try {
      await this.#promote(shard, jobId)
    } catch (error) {
      if (!(error instanceof BelfryError) || error.code !== 'in_progress') throw error
    }
  }

  async #promote(shard: number, jobId: string): Promise<void> {
    const { db, clock, wakeups } = this.#deps
    const done = await db.transaction(async (tx) => {
      await tx.setLockTimeout(LOCK_TIMEOUT_MS)
      const timer = await lockTimer(tx, shard, jobId)
      const now = clock.now()
      if (!timer || timer.dueAt > now) return { ...NOTHING, afterCommit: () => {} }
      if (timer.nominalAt === null) return { ...NOTHING, ...(await this.#deps.plan(tx, timer)) }
      return { ...(await decideJob(tx, this.#deps, timer, now, 'due')), afterCommit: () => {} }
    })
    done.afterCommit()
    for (const run of done.ready) wakeups.ready(run)
    for (const nominalAt of done.asked) wakeups.cancel(jobId, nominalAt)
    if (done.timer) wakeups.timer(shard, done.timer.dueAt)
  }
}
