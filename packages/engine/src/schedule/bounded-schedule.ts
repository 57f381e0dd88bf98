import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from './schedule.ts'

/** The fire times of a schedule from one instant on, and before another. */
export class BoundedSchedule implements Schedule {
  readonly #schedule: Schedule
  readonly #startAt: Instant
  readonly #endAt: Instant

  constructor(schedule: Schedule, { startAt, endAt }: { startAt: Instant; endAt: Instant }) {
    this.#schedule = schedule
    this.#startAt = startAt
    this.#endAt = endAt
  }

  next(after: Instant): Instant | null {
    const from = Math.max(after, this.#startAt - 1)
    if (from >= this.#endAt - 1) return null
    const fire = this.#schedule.next(from)
    return fire !== null && fire < this.#endAt ? fire : null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    const until = Math.min(atOrBefore, this.#endAt - 1)
    const from = Math.max(after, this.#startAt - 1)
    return until > from ? this.#schedule.latest(until, from) : null
  }

  count(after: Instant, until: Instant, limit: number): number {
    const from = Math.max(after, this.#startAt - 1)
    return this.#schedule.count(from, Math.min(until, this.#endAt - 1), limit)
  }
}
