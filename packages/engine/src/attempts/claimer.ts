import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import { type Queryable, UnknownOutcome } from '../store/database.ts'
import { type Claimed, claimRuns, type Delivery } from './claim.sql.ts'

/** Where claimed runs go: it says how many it can take, and takes them. */
export interface Taker {
  readonly queueId: number
  credit(): number
  freeSlots(): number
  wantsMore(): boolean
  take(leases: Lease[]): Promise<void>
}

export interface ClaimerDeps {
  db: Queryable
  clock: Clock
  random: Random
  logger: Logger
  leaseMs: number
  stopping: AbortSignal
}

const MAX_BATCH = 1_000
const LONGEST_WAIT_MS = 1_000
const LOWEST_TURN = Number.MIN_SAFE_INTEGER

/**
 * Claims the ready runs of one queue for all its workers on this node: few claims, big ones. Per priority level it
 * remembers a watermark below which it knows of no ready run, so that dead index entries are not walked again; whoever
 * makes a run ready below it says so, and the sweep finds what nobody said.
 */
export class Claimer implements Step {
  readonly #deps: ClaimerDeps
  readonly #taker: Taker
  readonly #watermarks = new Map<number, number>()
  readonly #levelsWithWork = new Set<number>()
  #mayHaveAtMostOnce = false

  constructor(taker: Taker, deps: ClaimerDeps) {
    this.#taker = taker
    this.#deps = deps
  }

  get queueId(): number {
    return this.#taker.queueId
  }

  /** Ready runs are known to wait: nothing may be leased past them. */
  get backlogged(): boolean {
    return this.#levelsWithWork.size > 0
  }

  /** A run of this level became ready. */
  hint(priority: number, turn: number): void {
    const known = this.#watermarks.get(priority)
    if (known === undefined || turn < known) this.#watermarks.set(priority, turn)
    this.#levelsWithWork.add(priority)
  }

  /** What a sweep found at the head of each level, without looking at watermarks. */
  sweep(heads: readonly (number | null)[]): void {
    heads.forEach((turn, priority) => {
      if (turn !== null) this.hint(priority, turn)
    })
  }

  async runOnce(): Promise<{ waitMs: number }> {
    if (!this.backlogged || !this.#taker.wantsMore()) return { waitMs: LONGEST_WAIT_MS }
    const limit = Math.min(MAX_BATCH, this.#taker.credit())
    const claimed = await this.#claim(limit, 'at_least_once')
    if (claimed === null || claimed.length === limit) return { waitMs: 0 }
    const slots = Math.min(MAX_BATCH, this.#taker.freeSlots())
    if (this.#mayHaveAtMostOnce && slots === 0) return { waitMs: LONGEST_WAIT_MS }
    // Such runs are never leased ahead: only into slots that are free now.
    const once = slots > 0 ? await this.#claim(slots, 'at_most_once') : []
    this.#mayHaveAtMostOnce = once === null || once.length > 0
    if (!this.#mayHaveAtMostOnce || once?.length !== slots) this.#levelsWithWork.clear()
    return { waitMs: 0 }
  }

  /** Null: the outcome was unknown and what had been leased was adopted. */
  async #claim(limit: number, delivery: Delivery): Promise<Claimed[] | null> {
    const { db, clock, random, leaseMs } = this.#deps
    const now = clock.now()
    const holder = newHolder(random)
    const levels = [...this.#levelsWithWork].map((priority) => ({
      priority,
      watermark: this.#watermarks.get(priority) ?? LOWEST_TURN,
    }))
    let claimed: Claimed[]
    try {
      claimed = await claimRuns(db, {
        queueId: this.queueId,
        holder,
        now,
        leaseUntil: now + leaseMs,
        levels,
        limit,
        delivery,
      })
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error
      await this.#taker.take(
        await recoverLeases(this.#deps, { holder, backendPid: error.backendPid, sentAt: now }, this.#deps.stopping),
      )
      return null
    }
    if (claimed.length > 0) {
      claimed.sort((a, b) => a.turn - b.turn)
      if (delivery === 'at_least_once') this.#raise(claimed)
      await this.#taker.take(claimed.map(({ lease }) => lease))
    }
    return claimed
  }

  #raise(claimed: readonly Claimed[]): void {
    for (const { priority, turn } of claimed) {
      if (turn > (this.#watermarks.get(priority) ?? LOWEST_TURN)) this.#watermarks.set(priority, turn)
    }
  }
}
