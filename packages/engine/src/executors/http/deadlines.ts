import type { Clock, Instant } from '../../runtime/clock.ts'

export interface Expiring {
  readonly deadline: Instant
  /** Where it stands among the pending; -1 if it does not. Only `Deadlines` writes it. */
  place: number
  expire(): void
}

/**
 * The deadlines of everything under way, with one timer for all: it is set for the earliest known when it was set, and a
 * call that has long ended costs one look when that time comes.
 */
export class Deadlines {
  readonly #clock: Clock
  /** Not a Set: its outgrown tables keep whatever was in them alive until the next full collection. */
  readonly #pending: Expiring[] = []
  #timer: { cancel(): void } | null = null
  #timerAt: Instant = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(item: Expiring): void {
    item.place = this.#pending.push(item) - 1
    if (item.deadline < this.#timerAt) this.#set(item.deadline)
  }

  remove(item: Expiring): void {
    const { place } = item
    if (place === -1) return
    item.place = -1
    const last = this.#pending.pop()
    if (last === undefined || last === item) return
    last.place = place
    this.#pending[place] = last
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
    for (const item of this.#pending.filter(({ deadline }) => deadline <= now)) {
      this.remove(item)
      item.expire()
    }
    const next = this.#pending.reduce(
      (earliest, { deadline }) => Math.min(earliest, deadline),
      Number.POSITIVE_INFINITY,
    )
    if (next < this.#timerAt) this.#set(next)
  }
}
