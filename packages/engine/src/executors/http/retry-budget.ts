import type { Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { ReturnLine } from './return-line.ts'
import { SlidingCounts } from './sliding-counts.ts'

export interface RetryBudgetSettings {
  /** Retries per first attempt. */
  share: number
  /** So many a second are always allowed, by all nodes together. */
  leastPerSecond: number
}

export const RETRY_BUDGET: RetryBudgetSettings = { share: 0.2, leastPerSecond: 1 }

const SPAN_MS = 60_000
const BUCKETS = 12
/** One bucket may take twice its part: retries come in bursts, and small ones hurt nobody. */
const BURST = 2
const BUCKET_MS = SPAN_MS / BUCKETS
/** Retries that went well buy so many more in the next bucket: from one a second to a hundred takes half a minute. */
const GROWTH = 2
/** Not longer: a target that is well again takes many more a little later. */
const LONGEST_WAIT_MS = 30_000
const MAX_BUDGETS = 10_000

/**
 * How many retries a target of a tenant gets from this node: a fifth of the first attempts of the last minute. So an outage
 * cannot become a storm, however many runs fail. A target that takes its retries well is in no outage: those buy further ones,
 * so that what a dead node left behind is not held up by a limit that is there for sick targets. Each node counts its own first attempts; what is always allowed is divided
 * by the live nodes, so that together they keep to it.
 */
export class RetryBudget {
  /** First attempts, and retries. */
  readonly #started = new SlidingCounts(SPAN_MS, BUCKETS)
  readonly #wentWell = new WentWell()
  readonly #line = new ReturnLine(LONGEST_WAIT_MS)
  readonly #settings: RetryBudgetSettings
  #usedAt: Instant = 0

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings
  }

  get usedAt(): Instant {
    return this.#usedAt
  }

  first(now: Instant): void {
    this.#usedAt = now
    this.#started.addFirst(now)
  }

  /** Whether a retry may start now; it is counted if so. */
  takeRetry(now: Instant, nodes: number): boolean {
    this.#usedAt = now
    const allowed = this.#perMinute(now, nodes)
    const isWithin =
      this.#started.second < allowed && this.#started.secondLately < Math.ceil((allowed / BUCKETS) * BURST)
    if (!isWithin && this.#started.secondLately >= this.#bought(now)) return false
    this.#started.addSecond(now)
    return true
  }

  retryWentWell(now: Instant): void {
    this.#wentWell.add(now)
  }

  /** When to come back after `takeRetry` said no. */
  returnAt(now: Instant, nodes: number, random: Random): Instant {
    const perSecond = Math.max((this.#perMinute(now, nodes) * 1_000) / SPAN_MS, (this.#bought(now) * 1_000) / BUCKET_MS)
    return this.#line.next(now + 1_000, perSecond, random)
  }

  /** For the bucket that is under way. */
  #bought(now: Instant): number {
    return GROWTH * this.#wentWell.inLastBucket(now)
  }

  #perMinute(now: Instant, nodes: number): number {
    const { share, leastPerSecond } = this.#settings
    const least = Math.max(1, (leastPerSecond * SPAN_MS) / 1_000 / nodes)
    return Math.max(least, this.#started.at(now).first * share)
  }
}

/** Retries that succeeded in the bucket before the one that is under way. */
class WentWell {
  #bucket = 0
  #now = 0
  #before = 0

  add(now: Instant): void {
    this.#at(now)
    this.#now++
  }

  inLastBucket(now: Instant): number {
    this.#at(now)
    return this.#before
  }

  #at(now: Instant): void {
    const bucket = Math.floor(now / BUCKET_MS)
    if (bucket <= this.#bucket) return
    this.#before = bucket === this.#bucket + 1 ? this.#now : 0
    this.#now = 0
    this.#bucket = bucket
  }
}

/** The budgets of this node, by tenant and origin. One that was not asked for a minute is as good as a new one. */
export class RetryBudgets {
  readonly #settings: RetryBudgetSettings
  readonly #budgets = new Map<string, RetryBudget>()

  constructor(settings: RetryBudgetSettings) {
    this.#settings = settings
  }

  of(key: string, now: Instant): RetryBudget {
    let budget = this.#budgets.get(key)
    if (budget === undefined) {
      if (this.#budgets.size >= MAX_BUDGETS) this.#forget(now)
      budget = new RetryBudget(this.#settings)
      this.#budgets.set(key, budget)
    }
    return budget
  }

  #forget(now: Instant): void {
    for (const [key, budget] of this.#budgets) if (now - budget.usedAt > SPAN_MS) this.#budgets.delete(key)
    // All of them are in use: the oldest begins anew.
    const [oldest] = this.#budgets.keys()
    if (oldest !== undefined && this.#budgets.size >= MAX_BUDGETS) this.#budgets.delete(oldest)
  }
}
