import type { Clock, Instant } from '../../runtime/clock.ts'
import { type Placed, PlacedList } from '../../runtime/placed-list.ts'

export interface Expiring extends Placed {
  readonly deadline: Instant
  expire(): void
}

/**
 * The deadlines of everything under way, with one timer for all: it is set for the earliest known when it was set, and a
 * call that has long ended costs one look when that time comes.
 */
export class Deadlines {
  readonly #clock: Clock
  readonly #pending = new PlacedList<Expiring>()
  #timer: { cancel(): void } | null = null
  #timerAt: Instant = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(item: Expiring): void {
    this.#pending.add(item)
    if (item.deadline < this.#timerAt) this.#set(item.deadline)
  }

  remove(item: Expiring): void {
    this.#pending.delete(item)
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = null
    this.#timerAt = Number.POSITIVE_INFINITY
  }

  #set(at: Instant): void {
    this.#timer?.cancel()
    this.#timerAt = at
    // A timer cannot wait longer than 2³¹ ms; it then finds nothing and is set again.
    const waitMs = Math.min(Math.max(0, at - this.#clock.now()), 2_147_483_647)
    this.#timer = this.#clock.timer(waitMs, () => this.#sweep())
  }

  #sweep(): void {
    this.close()
    const now = this.#clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const item of this.#pending) {
      if (item.deadline > now) next = Math.min(next, item.deadline)
      else if (this.#pending.delete(item)) item.expire()
    }
    if (next < this.#timerAt) this.#set(next)
  }
}
