import type { Clock, Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { WaitingLine } from '../../runtime/waiting-line.ts'
import { ReturnLine } from './return-line.ts'
import { SlidingCounts } from './sliding-counts.ts'

export interface OriginSlotsSettings {
  /** Calls to one origin at a time. */
  perOrigin: number
  /** Calls to all origins at a time. */
  total: number
}

export const ORIGIN_SLOTS: OriginSlotsSettings = { perOrigin: 256, total: 1_000 }

/** A run waits here for a slot that is to be free within this; otherwise its place in the executor is worth more. */
const WORTH_WAITING_MS = 1_000
/** An origin is called for the first time: before this nothing is known of how quick it is. */
const UNKNOWN_MS = 3_000
/** Longer than it should have been: the origin became slow while it waited. */
const LONGEST_WAIT_MS = 1_000
/** Sending away costs a lease and a row each. What is over waits here, however slow the origin is. */
const MAX_SENT_PER_SECOND = 2_000
const RATE_SPAN_MS = 2_000
const RATE_BUCKETS = 8
const COME_BACK_MS = 100
const SLOWEST_PER_SECOND = 0.1
const MAX_ORIGINS = 10_000

interface Waiter {
  since: Instant
  settle(entered: boolean): void
}

class Origin {
  active = 0
  readonly waiting = new WaitingLine<Waiter>()
  readonly ended = new SlidingCounts(RATE_SPAN_MS, RATE_BUCKETS)
  readonly sent = new SlidingCounts(1_000, 4)
  readonly line = new ReturnLine()
  /** Since when calls have been under way without a pause, and when one last ended. */
  busySince: Instant = 0
  lastEndAt: Instant = 0
  timer: { cancel(): void } | null = null
  isLettingIn = false

  /** Calls that end per second, of late. */
  rate(now: Instant): number {
    const spanMs = Math.min(RATE_SPAN_MS, Math.max(1, now - this.busySince))
    return (this.ended.at(now).first * 1_000) / spanMs
  }

  /** For how long nothing has ended. */
  quietMs(now: Instant): number {
    return now - Math.max(this.busySince, this.lastEndAt)
  }
}

/**
 * How many calls this node makes to one origin at a time. An origin may use as many slots as it leaves free to all others,
 * up to its limit: however many slow origins there are, a further one finds room. What is over waits here for a moment if
 * the origin is quick, and is sent away if it is not, since whoever waits holds a slot of the executor, and those are for all
 * origins.
 */
export class OriginSlots {
  readonly #deps: { clock: Clock; random: Random }
  readonly #settings: OriginSlotsSettings
  readonly #origins = new Map<string, Origin>()
  #active = 0
  #closed = false

  constructor(deps: { clock: Clock; random: Random }, settings: OriginSlotsSettings) {
    this.#deps = deps
    this.#settings = settings
  }

  /** Whether a call may begin now; null: `settle` hears it later. If so, `leave` is called when it has ended. */
  enter(name: string, now: Instant, settle: (entered: boolean) => void): boolean | null {
    if (this.#closed) return false
    const origin = this.#of(name)
    if (origin.active < this.#limit() && origin.waiting.length === 0) {
      this.#begin(origin, now)
      return true
    }
    if (!this.#isWorthWaiting(origin, now) && origin.sent.at(now).first < MAX_SENT_PER_SECOND) {
      origin.sent.addFirst(now)
      return false
    }
    origin.waiting.push({ since: now, settle })
    origin.timer ??= this.#deps.clock.timer(LONGEST_WAIT_MS, () => this.#sendAway(origin))
    return null
  }

  /** For a call that is made in any case: the one that sees whether the target is back. */
  enterAnyway(name: string, now: Instant): boolean {
    this.#begin(this.#of(name), now)
    return true
  }

  leave(name: string, now: Instant): void {
    const origin = this.#of(name)
    origin.active--
    this.#active--
    origin.ended.addFirst(now)
    origin.lastEndAt = now
    // Who is let in may leave at once: the loop that let it in goes on, instead of one inside the other.
    if (origin.isLettingIn) return
    origin.isLettingIn = true
    while (origin.waiting.length > 0 && origin.active < this.#limit()) {
      this.#begin(origin, now)
      origin.waiting.shift()?.settle(true)
    }
    origin.isLettingIn = false
  }

  /** When to come back after `enter` said no: as fast as the origin's calls end, one after the other. */
  returnAt(name: string, now: Instant): Instant {
    const origin = this.#of(name)
    // Before the first ones have ended, what could end at best is all that is known.
    const rate = origin.rate(now) || (origin.active * 1_000) / Math.max(1, origin.quietMs(now))
    return origin.line.next(now + COME_BACK_MS, Math.max(SLOWEST_PER_SECOND, rate), this.#deps.random)
  }

  /** Nothing begins any more, and nobody waits any longer. */
  close(): void {
    this.#closed = true
    for (const origin of this.#origins.values()) {
      origin.timer?.cancel()
      // Only those that wait now: who is told may come again, and is turned away at the door.
      for (let left = origin.waiting.length; left > 0; left--) origin.waiting.shift()?.settle(false)
    }
  }

  #begin(origin: Origin, now: Instant): void {
    if (origin.active === 0) origin.busySince = now
    origin.active++
    this.#active++
  }

  #limit(): number {
    return Math.max(1, Math.min(this.#settings.perOrigin, this.#settings.total - this.#active))
  }

  #isWorthWaiting(origin: Origin, now: Instant): boolean {
    const rate = origin.rate(now)
    if (rate === 0) return origin.quietMs(now) < UNKNOWN_MS
    // The first few that end, of many that began at once, tell how long a call takes, not how many end in a second.
    if (now - origin.busySince < UNKNOWN_MS && origin.ended.first < origin.active) return true
    return ((origin.waiting.length + 1) * 1_000) / rate <= WORTH_WAITING_MS
  }

  #sendAway(origin: Origin): void {
    const { clock } = this.#deps
    const now = clock.now()
    origin.timer = null
    const isLate = () => origin.waiting.first !== undefined && now - origin.waiting.first.since >= LONGEST_WAIT_MS
    while (isLate()) origin.waiting.shift()?.settle(false)
    const next = origin.waiting.first
    if (next) origin.timer = clock.timer(next.since + LONGEST_WAIT_MS - now, () => this.#sendAway(origin))
  }

  #of(name: string): Origin {
    let origin = this.#origins.get(name)
    if (origin === undefined) {
      if (this.#origins.size >= MAX_ORIGINS)
        for (const [other, { active, waiting }] of this.#origins)
          if (active + waiting.length === 0) this.#origins.delete(other)
      origin = new Origin()
      this.#origins.set(name, origin)
    }
    return origin
  }
}
