import { firstFrom, lastUntil } from './bits.ts'
import { type CalendarDay, dateOf, daysInMonth } from './calendar-day.ts'
import { CronPattern } from './cron-pattern.ts'
import { DAY_MS, SECOND_MS } from './duration.ts'
import type { ExcludedTimes } from './excluded-times.ts'
import { firstTimeOfDay, lastTimeOfDay } from './time-of-day.ts'
import type { LocalTime } from './zone.ts'

const LAST_SECOND = 86_399
const MAX_REMEMBERED = 256

/**
 * The local times, in whole seconds, that a pattern matches and that nothing leaves out. Searched month by month: the days
 * of a month that match are one mask, and times of day are only looked for on days that do.
 */
export class WallTimes {
  readonly #pattern: CronPattern
  readonly #excluded: ExcludedTimes
  /** Whether lists of excluded patterns leave nothing of a day: else each day of 100 years would be searched again. */
  #nothingLeft: Map<readonly CronPattern[], boolean> | undefined

  constructor(pattern: CronPattern, excluded: ExcludedTimes) {
    this.#pattern = pattern
    this.#excluded = excluded
  }

  /** The first one at or after `from` and before `until`. */
  next(from: LocalTime, until: LocalTime): LocalTime | null {
    const { days } = this.#excluded
    let day: CalendarDay | null = Math.floor(from / DAY_MS)
    let time = Math.ceil((from - day * DAY_MS) / SECOND_MS)
    while (day * DAY_MS < until) {
      const open = days.openFrom(day)
      if (open === null) return null
      if (open !== day) time = 0
      const found = this.#nextInMonth(open, time)
      if (found.at !== null) return found.at < until ? found.at : null
      day = found.nextMonth
      time = 0
    }
    return null
  }

  /** The last one at or before `until` and at or after `from`. */
  previous(until: LocalTime, from: LocalTime): LocalTime | null {
    const { days } = this.#excluded
    let day: CalendarDay = Math.floor(until / DAY_MS)
    let time = Math.floor((until - day * DAY_MS) / SECOND_MS)
    while ((day + 1) * DAY_MS > from) {
      const open = days.openUntil(day)
      if (open === null) return null
      if (open !== day) time = LAST_SECOND
      const found = this.#previousInMonth(open, time)
      if (found.at !== null) return found.at >= from ? found.at : null
      day = found.previousMonth
      time = LAST_SECOND
    }
    return null
  }

  has(local: LocalTime): boolean {
    return this.next(local, local + 1) === local
  }

  #nextInMonth(from: CalendarDay, time: number): { at: LocalTime } | { at: null; nextMonth: CalendarDay } {
    const { year, month, day } = dateOf(from)
    const beforeFirst = from - day
    const mask = this.#pattern.daysIn(year, month)
    for (let bit = firstFrom(mask, day - 1); bit >= 0; bit = firstFrom(mask, bit + 1)) {
      const found = beforeFirst + bit + 1
      const excluded = this.#excludedOn(found, year, month, bit + 1)
      if (excluded === 'all') continue
      const second = firstTimeOfDay(this.#pattern, found === from ? time : 0, excluded)
      if (second >= 0) return { at: found * DAY_MS + second * SECOND_MS }
    }
    return { at: null, nextMonth: beforeFirst + daysInMonth(year, month) + 1 }
  }

  #previousInMonth(until: CalendarDay, time: number): { at: LocalTime } | { at: null; previousMonth: CalendarDay } {
    const { year, month, day } = dateOf(until)
    const beforeFirst = until - day
    const mask = this.#pattern.daysIn(year, month)
    for (let bit = lastUntil(mask, day - 1); bit >= 0; bit = lastUntil(mask, bit - 1)) {
      const found = beforeFirst + bit + 1
      const excluded = this.#excludedOn(found, year, month, bit + 1)
      if (excluded === 'all') continue
      const second = lastTimeOfDay(this.#pattern, found === until ? time : LAST_SECOND, excluded)
      if (second >= 0) return { at: found * DAY_MS + second * SECOND_MS }
    }
    return { at: null, previousMonth: beforeFirst }
  }

  #excludedOn(found: CalendarDay, year: number, month: number, day: number): readonly CronPattern[] | 'all' {
    if (this.#excluded.days.has(found)) return 'all'
    const patterns = this.#excluded.patternsOn(year, month, day)
    return patterns.length > 0 && this.#leavesNothing(patterns) ? 'all' : patterns
  }

  #leavesNothing(patterns: readonly CronPattern[]): boolean {
    this.#nothingLeft ??= new Map()
    const known = this.#nothingLeft.get(patterns)
    if (known !== undefined) return known
    const leavesNothing = firstTimeOfDay(this.#pattern, 0, patterns) < 0
    if (this.#nothingLeft.size >= MAX_REMEMBERED) this.#nothingLeft.clear()
    this.#nothingLeft.set(patterns, leavesNothing)
    return leavesNothing
  }
}

export const EVERY_SECOND = new CronPattern('* * * * * *')

/** All local times that nothing leaves out. */
export function openTimes(excluded: ExcludedTimes): WallTimes {
  return new WallTimes(EVERY_SECOND, excluded)
}
