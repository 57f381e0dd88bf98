import { liveAmong, renewLeases } from '../../leases/heartbeat.sql.ts'
import { byLockOrder, type Lease, LOST, lastUntil, runKey } from '../../leases/lease.ts'
import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Step } from '../../runtime/loop.ts'
import type { Vital } from '../../store/database.ts'
import type { ActiveRun } from './active-run.ts'
import type { HandlerPool } from './handler-pool.ts'

const TICK_MS = 200
const MAX_BATCH = 1_000
/** A handler that ignores its timeout for so long gives its slot back; what it still does is nobody's business. */
const STUCK_MS = 5_000

interface Held {
  lease: Lease
  run: ActiveRun | null
  pool: HandlerPool
}

interface KeeperDeps {
  db: Vital
  clock: Clock
  logger: Logger
  leaseMs: number
  pools(): HandlerPool[]
  giveBack(leases: readonly Lease[]): void
}

/** At a third of the lease's length: two heartbeats may be lost before it expires. */
const needsRenewal = (lease: Lease, now: Instant, leaseMs: number): boolean =>
  lease.leaseUntil !== LOST && lease.leaseUntil - now <= (leaseMs * 2) / 3 && lease.leaseUntil < lastUntil(lease)

/**
 * Keeps this node's leases alive while their handlers run, in batches, and tells handlers what happened to theirs: time is
 * up, canceled, lost. Work that ends before its first heartbeat is due never causes one.
 */
export class Keeper implements Step {
  readonly name = 'keeper'
  readonly #deps: KeeperDeps

  constructor(deps: KeeperDeps) {
    this.#deps = deps
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const { clock, leaseMs, pools, giveBack } = this.#deps
    const now = clock.now()
    const due: Held[] = []
    for (const pool of pools()) {
      giveBack(pool.takeOverdue(now))
      // What was not begun while the clock was not trusted.
      pool.refill()
      for (const run of pool.active) {
        if (now >= run.lease.deadline + STUCK_MS) pool.giveUp(run, 'timeout')
        else if (now >= run.lease.deadline) run.abort('timeout')
        else if (!run.completesItself && needsRenewal(run.lease, now, leaseMs))
          due.push({ lease: run.lease, run, pool })
      }
      for (const lease of pool.waitingLeases())
        if (needsRenewal(lease, now, leaseMs)) due.push({ lease, run: null, pool })
    }
    for (let i = 0; i < due.length; i += MAX_BATCH) await this.#renew(due.slice(i, i + MAX_BATCH))
    return { waitMs: TICK_MS }
  }

  /** A run shall stop: its handler is told at once. */
  cancel(jobId: string, nominalAt: Instant): void {
    for (const pool of this.#deps.pools()) {
      for (const run of pool.active)
        if (run.lease.jobId === jobId && run.lease.nominalAt === nominalAt) run.abort('canceled')
    }
  }

  async #renew(batch: Held[]): Promise<void> {
    const { db, leaseMs } = this.#deps
    const byRun = new Map(batch.map((held) => [runKey(held.lease), held]))
    const fences = batch.map(({ lease }) => lease).sort(byLockOrder)
    for (const renewed of await renewLeases(db, fences, leaseMs)) {
      const held = byRun.get(runKey(renewed))
      byRun.delete(runKey(renewed))
      if (!held) continue
      held.lease.leaseUntil = renewed.leaseUntil
      if (renewed.cancelRequested) held.run?.abort('canceled')
    }
    if (byRun.size > 0) await this.#notReturned([...byRun.values()])
    for (const pool of new Set(batch.map((held) => held.pool))) pool.refill()
  }

  /** Another transaction holds the row (the next tick tries again), or the lease is no longer ours. */
  async #notReturned(held: readonly Held[]): Promise<void> {
    const { db, logger } = this.#deps
    const leases = held.map(({ lease }) => lease)
    const live = await liveAmong(db, leases)
    for (const { run, pool, lease } of held) {
      if (live.has(runKey(lease))) continue
      lease.leaseUntil = LOST
      if (!run || run.over || run.completesItself || !pool.active.has(run)) continue
      logger.warn('a lease was lost while its handler was at work', { jobId: lease.jobId, attempt: lease.attempt })
      pool.giveUp(run, 'lease_lost')
    }
  }
}
