import type { LimitedQueues } from '../concurrency/limited-queues.ts'
import { liveAmong } from '../leases/heartbeat.sql.ts'
import { byLockOrder, type Fence, runKey } from '../leases/lease.ts'
import { Lanes } from '../runtime/lanes.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import { isConnectionLost, isPartitionMissing, type Queryable, UnknownOutcome } from '../store/database.ts'
import {
  type Answered,
  type Ended,
  type Ends,
  type Finish,
  finishAnswered,
  finishEnded,
  finishGoesOn,
  finishSucceeded,
  type GoesOn,
  lookAtAttempts,
  type Succeeded,
} from './finish.sql.ts'

export type FinishOutcome = 'ok' | 'lease_lost'

interface Pending {
  finish: Finish
  settle: (outcome: FinishOutcome) => void
}

const RETRY_PAUSE_MS = 200
/** Ends that may wait to be written before nothing more is begun: about a second's work, and 50 MB with results of 1 KB. */
const MAX_BEHIND = 50_000
/** A row that somebody holds is passed over; it is tried again soon, not in a spin. */
const LOCKED_PAUSE_MS = 20

export interface FinisherDeps {
  db: Queryable
  logger: Logger
  /** Makes the partition that a finish did not find. */
  ensurePartitions(): Promise<void>
  wakeups: Wakeups
  limited: LimitedQueues
}

/**
 * Ends attempts in batches. An attempt is settled only by what the database says: `ok` after the commit that contains its
 * end, `lease_lost` when its fence is not the live lease and history does not know it either. While the database is away
 * the batch waits and is sent again; that is harmless, since a fence works once.
 */
export class Finisher {
  readonly #deps: FinisherDeps
  readonly #lanes: Lanes<Pending>
  /** Ends whose rows somebody holds: they come back after a pause, and no lane waits for them. */
  readonly #aside = new Set<Promise<void>>()
  #abandoned = false

  constructor(deps: FinisherDeps, options: { lanes: number; maxBatch: number }) {
    this.#deps = deps
    this.#lanes = new Lanes({ ...options, work: (batch) => this.#settle(batch) })
  }

  finish(finish: Finish, settle: (outcome: FinishOutcome) => void): void {
    this.#lanes.push({ finish, settle })
  }

  finished(finish: Finish): Promise<FinishOutcome> {
    return new Promise((settle) => this.finish(finish, settle))
  }

  /** The run was ended by somebody else: in its handler's own transaction. */
  gone(fence: Fence): void {
    this.#freed(fence)
    this.#deps.wakeups.ended(fence.jobId, fence.definition)
    if (fence.isAwaited) this.#deps.wakeups.told()
  }

  /** More has ended than can be written: whoever begins runs waits until there is less. */
  get isBehind(): boolean {
    return this.#lanes.pending > MAX_BEHIND
  }

  /** Ends of this node are on their way to the database. */
  get isWriting(): boolean {
    return !this.#lanes.isIdle
  }

  /** Ends when all that was pushed has been settled. */
  async drained(): Promise<void> {
    await this.#lanes.drained()
    while (this.#aside.size > 0) {
      await Promise.all(this.#aside)
      await this.#lanes.drained()
    }
  }

  /** Stops trying: what is not settled is left to the reaper. */
  abandon(): void {
    this.#abandoned = true
  }

  async #settle(batch: Pending[]): Promise<void> {
    let left = batch
    for (;;) {
      try {
        const locked = await this.#once(left)
        if (locked.length > 0 && !this.#abandoned) this.#putAside(locked)
        return
      } catch (error) {
        if (this.#abandoned) return
        if (error instanceof UnknownOutcome || isConnectionLost(error)) {
          await pause(RETRY_PAUSE_MS)
        } else if (isPartitionMissing(error)) {
          await this.#deps.ensurePartitions().catch(() => pause(RETRY_PAUSE_MS))
        } else if (left.length > 1) {
          const middle = left.length >> 1
          await this.#settle(left.slice(0, middle))
          left = left.slice(middle)
        } else {
          this.#deps.logger.error('an attempt cannot be finished; its lease will expire', {
            error,
            fence: left[0]?.finish.fence,
          })
          left[0]?.settle('lease_lost')
          return
        }
      }
    }
  }

  #putAside(locked: readonly Pending[]): void {
    const aside = pause(LOCKED_PAUSE_MS).then(() => {
      this.#aside.delete(aside)
      for (const pending of locked) this.#lanes.push(pending)
    })
    this.#aside.add(aside)
  }

  /** Sends one batch; answers what is still open because its row was locked. */
  async #once(batch: Pending[]): Promise<Pending[]> {
    const finishes = batch.map((pending) => pending.finish).sort((a, b) => byLockOrder(a.fence, b.fence))
    const ended = await sendByKind(this.#deps.db, finishes, this.#deps.wakeups)
    if (ended < batch.length) return this.#lookAt(batch)
    for (const pending of batch) this.#ended(pending)
    return []
  }

  #ended({ finish, settle }: Pending): void {
    settle('ok')
    if (finish.kind === 'goes_on') this.#freed(finish.fence)
    else this.gone(finish.fence)
  }

  #freed({ queueId, shard, limitKey }: Fence): void {
    const { limited, wakeups } = this.#deps
    if (queueId !== undefined && limited.has(queueId)) wakeups.freed(queueId)
    if (limitKey != null) wakeups.keyFreed(shard, limitKey)
  }

  /** Some did not end: locked, lost, or ended by an earlier try whose answer was lost. The tables tell which. */
  async #lookAt(batch: Pending[]): Promise<Pending[]> {
    const { db } = this.#deps
    // In this order: an attempt that ends between the two questions is found by the second.
    const fences = batch.map((pending) => pending.finish.fence)
    const live = await liveAmong(db, fences)
    const open = batch.filter((pending) => live.has(runKey(pending.finish.fence)))
    const closed = batch.filter((pending) => !live.has(runKey(pending.finish.fence)))
    if (closed.length > 0) {
      const known = await lookAtAttempts(
        db,
        closed.map((pending) => pending.finish),
      )
      for (const pending of closed) {
        if (known.has(pending.finish)) this.#ended(pending)
        else pending.settle('lease_lost')
      }
    }
    return open.filter((pending) => {
      // The reaper's fence names the expiry it saw: a lease that was renewed meanwhile is none of its business.
      if (pending.finish.leaseUntil === undefined) return true
      pending.settle('lease_lost')
      return false
    })
  }
}

/** Answers how many have ended. Items are in lock order. */
async function sendByKind(db: Queryable, finishes: readonly Finish[], wakeups: Wakeups): Promise<number> {
  let all = 0
  const add = ({ ended, told }: Ends) => {
    all += ended
    if (told > 0) wakeups.told()
  }
  const succeeded = finishes.filter((finish): finish is Succeeded => finish.kind === 'succeeded')
  if (succeeded.length > 0) add(await finishSucceeded(db, succeeded))
  if (succeeded.length === finishes.length) return all
  const answered = finishes.filter((finish): finish is Answered => finish.kind === 'answered')
  if (answered.length > 0) add(await finishAnswered(db, answered))
  if (succeeded.length + answered.length === finishes.length) return all
  const ended = finishes.filter((finish): finish is Ended => finish.kind === 'ended')
  const goesOn = finishes.filter((finish): finish is GoesOn => finish.kind === 'goes_on')
  if (ended.length > 0) add(await finishEnded(db, ended))
  if (goesOn.length > 0) all += await finishGoesOn(db, goesOn)
  return all
}
