import type { LimitedQueues } from '../concurrency/limited-queues.ts'
import { giveBackRuns } from '../leases/give-back.sql.ts'
import { type Lease, runKey } from '../leases/lease.ts'
import { LeaseWrites } from '../leases/lease-writes.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Vital } from '../store/database.ts'

interface GoingBack {
  lease: Lease
  settled(isBack: boolean): void
}

interface GiveBackDeps {
  db: Vital
  clock: Clock
  logger: Logger
  wakeups: Wakeups
  limited: LimitedQueues
  stopping: AbortSignal
}

/** Gives leases back whose work has not begun: the runs are ready again in their turn, here or elsewhere. */
export class GiveBack {
  readonly #writes: LeaseWrites<GoingBack>

  constructor({ db, clock, logger, wakeups, limited, stopping }: GiveBackDeps) {
    this.#writes = new LeaseWrites({
      ...{ db, logger, lanes: 1 },
      write: async (items) => {
        const back = await giveBackRuns(
          db,
          items.map(({ lease }) => lease),
        )
        for (const run of back) wakeups.ready(run)
        return new Set(back.map(runKey))
      },
      settle: ({ lease, settled }, isBack) => {
        settled(isBack)
        if (!isBack) return
        if (limited.has(lease.queueId)) wakeups.freed(lease.queueId)
        if (lease.limitKey !== null && lease.limitKey !== undefined) wakeups.keyFreed(lease.shard, lease.limitKey)
      },
      isWorthIt: ({ lease }) => !stopping.aborted && lease.leaseUntil > clock.now(),
    })
  }

  /** `isBack`: the lease was live until now. */
  push(lease: Lease, settled: (isBack: boolean) => void): void {
    this.#writes.push({ lease, settled })
  }

  drained(): Promise<void> {
    return this.#writes.drained()
  }
}
