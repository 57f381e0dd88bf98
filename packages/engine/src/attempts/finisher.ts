import type { LimitedQueues } from '../concurrency/limited-queues.ts'
import { BelfryError } from '../errors.ts'
import { OUTCOME } from '../job/states.ts'
import { lookAtLeases } from '../leases/heartbeat.sql.ts'
import { byLockOrder, type Fence, runKey } from '../leases/lease.ts'
import { Lanes } from '../runtime/lanes.ts'
import type { Logger } from '../runtime/logger.ts'
import { pause } from '../runtime/pause.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Queryable, Vital } from '../store/database.ts'
import { isContention, isOutage, isPartitionMissing } from '../store/database-errors.ts'
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
import { withoutWhatItLeft } from './unwritable.ts'

export type FinishOutcome = 'ok' | 'lease_lost'

interface Pending {
  finish: Finish
  settle: (outcome: FinishOutcome) => void
  /** How the database refused it when it was sent alone; null: it was not. */
  refused: Refused | null
}

interface Refused {
  tries: number
  /** Of these tries, the first one and those before which another end passed since the last. */
  counted: number
  /** How many ends had passed by then. */
  passed: number
  /** What stands here in its place says less, and is refused too. */
  isLess: boolean
}

const RETRY_PAUSE_MS = 200
/** Ends that may wait to be written before nothing more is begun: about a second's work, and 50 MB with results of 1 KB. */
const MAX_BEHIND = 50_000
/** A row that somebody holds is passed over; it is tried again soon, not in a spin. */
const LOCKED_PAUSE_MS = 20
/** An end that is refused alone so often, while others pass, is itself what the database refuses. */
const MAX_REFUSED = 3
const LONGEST_PAUSE_MS = 5_000

export interface FinisherDeps {
  db: Vital
  logger: Logger
  /** Makes the partition that a finish did not find. */
  ensurePartitions(): Promise<void>
  wakeups: Wakeups
  limited: LimitedQueues
}

/**
 * Ends attempts in batches. An attempt is settled only by what the database says: `ok` after the commit that contains its
 * end, `lease_lost` when its fence is not the live lease and history does not know it either. While the database is away
 * the batch waits and is sent again; that is harmless, since a fence works once. Of a batch that is refused for another reason each
 * half is sent, down to the ends that are to blame. While all are refused, none is.
 */
export class Finisher {
  readonly #deps: FinisherDeps
  readonly #lanes: Lanes<Pending>
  /** Ends whose rows another transaction holds, and refused ones: they come back after a pause, and no lane waits for them. */
  readonly #aside = new Set<Promise<void>>()
  #putAside = 0
  /** Ends that have passed. */
  #passed = 0
  #abandoned = false

  constructor(deps: FinisherDeps, options: { lanes: number; maxBatch: number }) {
    this.#deps = deps
    this.#lanes = new Lanes({ ...options, work: (batch) => this.#settle(batch) })
  }

  finish(finish: Finish, settle: (outcome: FinishOutcome) => void): void {
    this.#lanes.push({ finish, settle, refused: null })
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
    return this.#lanes.pending + this.#putAside > MAX_BEHIND
  }

  /** For those who bring ends from elsewhere: they keep theirs, and bring them again. */
  mustNotBeBehind(): void {
    if (this.isBehind)
      throw new BelfryError('database_unavailable', 'more has ended than the database takes: send it again')
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
        if (locked.length > 0 && !this.#abandoned) this.#comesBack(locked, LOCKED_PAUSE_MS)
        return
      } catch (error) {
        if (this.#abandoned) return
        if (isOutage(error) || isContention(error)) {
          await pause(RETRY_PAUSE_MS)
        } else if (isPartitionMissing(error)) {
          await this.#deps.ensurePartitions().catch(() => pause(RETRY_PAUSE_MS))
        } else if (left.length > 1) {
          const middle = left.length >> 1
          await this.#settle(left.slice(0, middle))
          left = left.slice(middle)
        } else {
          this.#refused(left[0] as Pending, error)
          return
        }
      }
    }
  }

  #comesBack(batch: readonly Pending[], afterMs: number): void {
    this.#putAside += batch.length
    const aside = pause(afterMs).then(() => {
      this.#aside.delete(aside)
      this.#putAside -= batch.length
      for (const pending of batch) this.#lanes.push(pending)
    })
    this.#aside.add(aside)
  }

  /** One end alone was refused, and not because the database is away. */
  #refused({ finish, settle, refused: before }: Pending, error: unknown): void {
    const { logger } = this.#deps
    const { tries, counted, passed, isLess } = before ?? NEVER_REFUSED
    const refused = {
      tries: tries + 1,
      counted: this.#passed > passed ? counted + 1 : counted,
      passed: this.#passed,
      isLess,
    }
    if (refused.tries === MAX_REFUSED && !isLess)
      logger.error('the end of an attempt cannot be written', { error, fence: finish.fence })
    // The reaper's are not kept: it finds the lease again.
    if (refused.counted < MAX_REFUSED && !(finish.leaseUntil !== undefined && refused.tries >= MAX_REFUSED)) {
      this.#comesBack([{ finish, settle, refused }], Math.min(RETRY_PAUSE_MS * 2 ** tries, LONGEST_PAUSE_MS))
    } else if (isLess) {
      // Not even that it failed: its lease expires.
      settle('lease_lost')
    } else {
      const less = withoutWhatItLeft(finish, error)
      const isAsSaid = 'outcome' in finish && finish.outcome === less.outcome
      this.#lanes.push({
        finish: less,
        // Whoever said that it succeeded hears that this was not taken.
        settle: isAsSaid ? settle : () => settle('lease_lost'),
        refused: { ...NEVER_REFUSED, isLess: true },
      })
    }
  }

  /** Sends one batch; answers what is still open because its row was locked. */
  async #once(batch: Pending[]): Promise<Pending[]> {
    const finishes = batch.map((pending) => pending.finish).sort((a, b) => byLockOrder(a.fence, b.fence))
    const ended = await sendByKind(this.#deps.db, finishes, this.#deps.wakeups)
    this.#passed += ended
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
    const live = new Map((await lookAtLeases(db, fences)).map((lease) => [runKey(lease), lease]))
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
    return open.flatMap((pending) => {
      // The reaper's fence names the expiry it saw: a lease that was renewed meanwhile is none of its business.
      if (pending.finish.leaseUntil !== undefined) {
        pending.settle('lease_lost')
        return []
      }
      const isAsked = live.get(runKey(pending.finish.fence))?.cancelRequested === true
      return isAsked && pending.finish.kind === 'goes_on' ? stopped(pending, pending.finish) : pending
    })
  }
}

/** Its run was asked to stop, so it does not go on. The caller that wanted it to go on hears that this was not taken, as it will if it asks again. */
const stopped = (pending: Pending, finish: GoesOn): Pending => ({
  finish: {
    ...{ kind: 'ended', outcome: OUTCOME.canceled, failureClass: 'canceled', result: null },
    ...{ fence: finish.fence, startedAt: finish.startedAt, finishedAt: finish.finishedAt },
    ...{ statusCode: finish.statusCode, response: finish.response ?? null, error: finish.error ?? NOT_DONE },
  },
  settle: () => pending.settle('lease_lost'),
  refused: null,
})

const NOT_DONE = 'canceled before it was done'

const NEVER_REFUSED: Refused = { tries: 0, counted: 0, passed: -1, isLess: false }

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
