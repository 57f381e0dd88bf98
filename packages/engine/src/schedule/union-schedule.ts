import type { Instant } from '../runtime/clock.ts'
import { countFireTimes, type Schedule } from './schedule.ts'

interface Member {
  schedule: Schedule
  /** What it answered last: from `asked` until `fire` (for ever, if that is null) the answer is the same. */
  asked: Instant
  fire: Instant | null
}

/** Fires whenever one of several schedules does; where several do, once. */
export class UnionSchedule implements Schedule {
  readonly #members: readonly Member[]

  constructor(schedules: readonly Schedule[]) {
    this.#members = schedules.map((schedule) => ({ schedule, asked: Number.POSITIVE_INFINITY, fire: null }))
  }

  /** In a walk only the member that fired is asked again: one that fires once a year is not searched for every minute. */
  next(after: Instant): Instant | null {
    let first: Instant | null = null
    for (const member of this.#members) {
      if (after < member.asked || (member.fire !== null && after >= member.fire)) {
        member.asked = after
        member.fire = member.schedule.next(after)
      }
      if (member.fire !== null && (first === null || member.fire < first)) first = member.fire
    }
    return first
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let last: Instant | null = null
    for (const { schedule } of this.#members) last = schedule.latest(atOrBefore, last ?? after) ?? last
    return last
  }

  count(after: Instant, until: Instant, limit: number): number {
    return countFireTimes(this, after, until, limit)
  }
}
