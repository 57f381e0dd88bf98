import type { Instant } from '../runtime/clock.ts'
import { countFireTimes, type Schedule } from './schedule.ts'

/** Instants that are left out. */
export interface Closed {
  /** The first instant at or after another that is not left out; null if there is none. */
  openFrom(at: Instant): Instant | null
  /** The last instant at or before another that is not left out; null if there is none. */
  openUntil(at: Instant): Instant | null
}

/**
 * What is left out in one piece is passed over at once. Only an exclusion that hits an interval's times one by one makes it
 * try each of them; after so many in a row it counts as over.
 */
const MAX_TRIES = 100_000

/** The fire times of a schedule that are not left out. */
export class ExcludingSchedule implements Schedule {
  readonly #schedule: Schedule
  readonly #closed: Closed

  constructor(schedule: Schedule, closed: Closed) {
    this.#schedule = schedule
    this.#closed = closed
  }

  next(after: Instant): Instant | null {
    let from = after
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const fire = this.#schedule.next(from)
      const open = fire === null ? null : this.#closed.openFrom(fire)
      if (open === null || open === fire) return open
      from = open - 1
    }
    return null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let until = atOrBefore
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const fire = this.#schedule.latest(until, after)
      const open = fire === null ? null : this.#closed.openUntil(fire)
      if (open === null || open === fire) return open
      until = open
    }
    return null
  }

  count(after: Instant, until: Instant, limit: number): number {
    return countFireTimes(this, after, until, limit)
  }
}
