import type { Instant } from '../runtime/clock.ts'
import { countFireTimes, type Schedule } from './schedule.ts'

/** Fires whenever one of several schedules does; where several do, once. */
export class UnionSchedule implements Schedule {
  readonly #schedules: readonly Schedule[]

  constructor(schedules: readonly Schedule[]) {
    this.#schedules = schedules
  }

  next(after: Instant): Instant | null {
    let first: Instant | null = null
    for (const schedule of this.#schedules) {
      const fire = schedule.next(after)
      if (fire !== null && (first === null || fire < first)) first = fire
    }
    return first
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let last: Instant | null = null
    for (const schedule of this.#schedules) last = schedule.latest(atOrBefore, last ?? after) ?? last
    return last
  }

  count(after: Instant, until: Instant, limit: number): number {
    return countFireTimes(this, after, until, limit)
  }
}
