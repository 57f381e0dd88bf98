import { isAtMostOnce, PRIORITIES } from '../job/level.ts'
import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import { type Database, UnknownOutcome } from '../store/database.ts'
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
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  leaseMs: number
  stopping: AbortSignal
}

const MAX_BATCH = 2_000
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
  /** Levels that may have ready runs. A level leaves before it is claimed from, so that a hint meanwhile is not lost. */
  readonly #hinted = new Set<number>()
  #claiming = 0

  constructor(taker: Taker, deps: ClaimerDeps) {
    this.#taker = taker
    this.#deps = deps
  }

  get queueId(): number {
    return this.#taker.queueId
  }

  /** Ready runs are known to wait: nothing may be leased past them. */
  get backlogged(): boolean {
    return this.#hinted.size > 0 || this.#claiming > 0
  }

  /** A run of this level became ready. */
  hint(level: number, turn: number): void {
    const known = this.#watermarks.get(level)
    if (known === undefined || turn < known) this.#watermarks.set(level, turn)
    this.#hinted.add(level)
  }

  /** What a sweep found at the head of each level, without looking at watermarks. */
  sweep(heads: readonly (number | null)[]): void {
    heads.forEach((turn, level) => {
      if (turn !== null) this.hint(level, turn)
    })
  }

  async runOnce(): Promise<{ waitMs: number }> {
    const once = await this.#claimOnce()
    const usual = await this.#claimUsual()
    return { waitMs: once || usual ? 0 : LONGEST_WAIT_MS }
  }

  async #claimUsual(): Promise<boolean> {
    const levels = [...this.#hinted].filter((level) => !isAtMostOnce(level))
    if (levels.length === 0 || !this.#taker.wantsMore()) return false
    return this.#claim(levels, Math.min(MAX_BATCH, this.#taker.credit()), 'at_least_once')
  }

  /** Runs that may be performed at most once are leased into free slots only, and share those with the others. */
  async #claimOnce(): Promise<boolean> {
    const levels = [...this.#hinted].filter(isAtMostOnce)
    const slots = this.#taker.freeSlots()
    if (levels.length === 0 || slots === 0) return false
    const share = levels.length === this.#hinted.size ? slots : Math.ceil(slots / 2)
    return this.#claim(levels, Math.min(MAX_BATCH, share), 'at_most_once')
  }

  async #claim(levels: number[], limit: number, delivery: Delivery): Promise<boolean> {
    for (const level of levels) this.#hinted.delete(level)
    this.#claiming++
    try {
      const claimed = await this.#leaseUpTo(levels, limit, delivery)
      // A full claim, or one whose outcome was unknown: there may be more.
      if (claimed === null || claimed.length === limit) for (const level of levels) this.#hinted.add(level)
      return true
    } catch (error) {
      for (const level of levels) this.#hinted.add(level)
      throw error
    } finally {
      this.#claiming--
    }
  }

  /** Null: the outcome was unknown and what had been leased was adopted. */
  async #leaseUpTo(levels: number[], limit: number, delivery: Delivery): Promise<Claimed[] | null> {
    const { db, clock, random, leaseMs, stopping } = this.#deps
    const now = clock.now()
    const holder = newHolder(random)
    const asked = levels.map((level) => ({
      priority: level % PRIORITIES,
      watermark: this.#watermarks.get(level) ?? LOWEST_TURN,
    }))
    const claim = { queueId: this.queueId, holder, now, leaseUntil: now + leaseMs, levels: asked, limit, delivery }
    let claimed: Claimed[]
    try {
      claimed = await claimRuns(db, claim)
    } catch (error) {
      if (!(error instanceof UnknownOutcome)) throw error
      await this.#taker.take(await recoverLeases(this.#deps, { holder, backendPid: error.backendPid }, stopping))
      return null
    }
    claimed.sort((a, b) => a.turn - b.turn)
    for (const { priority, turn } of claimed) {
      const level = delivery === 'at_most_once' ? priority + PRIORITIES : priority
      if (turn > (this.#watermarks.get(level) ?? LOWEST_TURN)) this.#watermarks.set(level, turn)
    }
    if (claimed.length > 0) await this.#taker.take(claimed.map(({ lease }) => lease))
    return claimed
  }
}
