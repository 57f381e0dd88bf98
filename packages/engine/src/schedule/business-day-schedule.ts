import type { Instant } from '../runtime/clock.ts'
import type { CalendarDay } from './calendar-day.ts'
import { DAY_MS } from './duration.ts'
import type { ExcludedDays } from './excluded-days.ts'
import { notUnderstood } from './not-understood.ts'
import { countFireTimes, type Schedule } from './schedule.ts'
import type { LocalTime, Zone } from './zone.ts'

/** What moves to one day is collected, so both the days and the times on each of them have a bound. */
export const MAX_TIMES_PER_DAY = 24
const MAX_EXCLUDED_IN_A_ROW = 366

/** Refuses what would have too much to move. `timesPerDay` is how often the schedule fires on one day at most. */
export function checkBusinessDays(days: ExcludedDays, timesPerDay: number): void {
  if (timesPerDay > MAX_TIMES_PER_DAY) {
    throw notUnderstood(`onExcluded: next_business_day is for schedules of at most ${MAX_TIMES_PER_DAY} times of day`)
  }
  if (days.longerThan(MAX_EXCLUDED_IN_A_ROW) !== null) {
    throw notUnderstood(
      `exclude leaves out more than ${MAX_EXCLUDED_IN_A_ROW} days in a row, so there is no next business day to move to`,
    )
  }
}

/** A schedule that knows which local times its fire times stand for: where the clocks leave some out, not the ones they show. */
export interface MeantSchedule extends Schedule {
  meantAt(fire: Instant): readonly LocalTime[]
}

/**
 * Fire times on excluded days move to the next day that is not one, at the same time of day; equal times are one. The days
 * stay in order, the times within a day do not: Saturday 17:00 moves behind Sunday 09:00. So all times of a day are
 * collected, from the first excluded day before it on.
 */
export class BusinessDaySchedule implements Schedule {
  readonly #schedule: MeantSchedule
  readonly #zone: Zone
  readonly #excluded: ExcludedDays

  constructor(schedule: MeantSchedule, zone: Zone, excluded: ExcludedDays) {
    this.#schedule = schedule
    this.#zone = zone
    this.#excluded = excluded
  }

  next(after: Instant): Instant | null {
    let day = this.#openFrom(this.#dayAt(after))
    for (;;) {
      const fire = this.#timesOn(day).find((time) => time > after)
      if (fire !== undefined) return fire
      const later = this.#schedule.next(this.#midnightOf(day + 1) - 1)
      if (later === null) return null
      day = this.#openFrom(this.#dayAt(later))
    }
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let day = this.#openUntil(this.#dayAt(atOrBefore))
    // What moves past `after` was at most this much earlier.
    const from = after - (MAX_EXCLUDED_IN_A_ROW + 2) * DAY_MS
    for (;;) {
      const fire = this.#timesOn(day).findLast((time) => time <= atOrBefore)
      if (fire !== undefined) return fire > after ? fire : null
      const earlier = this.#schedule.latest(this.#beginOf(day) - 1, from)
      if (earlier === null) return null
      day = this.#openFrom(this.#dayAt(earlier))
    }
  }

  count(after: Instant, until: Instant, limit: number): number {
    return countFireTimes(this, after, until, limit)
  }

  /**
   * When a fire time of an excluded day happens instead; the same instant on other days. What moves is the time that was
   * meant: 02:30, if the clocks skip it and it would have fired at 03:00.
   */
  movedFrom(fire: Instant): Instant[] {
    const day = this.#dayAt(fire)
    const open = this.#openFrom(day)
    if (open === day) return [fire]
    const meant = this.#schedule.meantAt(fire).filter((local) => Math.floor(local / DAY_MS) === day)
    const locals = meant.length === 0 ? [this.#zone.localOf(fire)] : meant
    return locals.map((local) => this.#zone.instantOf(local + (open - day) * DAY_MS))
  }

  #timesOn(day: CalendarDay): Instant[] {
    const until = this.#midnightOf(day + 1)
    const times = new Set<Instant>()
    let fire = this.#schedule.next(this.#beginOf(day) - 1)
    while (fire !== null && fire < until) {
      for (const time of this.movedFrom(fire)) times.add(time)
      fire = this.#schedule.next(fire)
    }
    return [...times].sort((one, other) => one - other)
  }

  /** Where the excluded days before a business day begin. */
  #beginOf(day: CalendarDay): Instant {
    return this.#midnightOf(this.#openUntil(day - 1) + 1)
  }

  #dayAt(instant: Instant): CalendarDay {
    return Math.floor(this.#zone.localOf(instant) / DAY_MS)
  }

  #midnightOf(day: CalendarDay): Instant {
    return this.#zone.instantOf(day * DAY_MS)
  }

  #openFrom(day: CalendarDay): CalendarDay {
    return this.#excluded.openFrom(day) as CalendarDay
  }

  #openUntil(day: CalendarDay): CalendarDay {
    return this.#excluded.openUntil(day) as CalendarDay
  }
}
