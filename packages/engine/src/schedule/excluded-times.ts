import { type Bits, hasBit } from './bits.ts'
import { daysInMonth } from './calendar-day.ts'
import type { CronPattern } from './cron-pattern.ts'
import { DAY_MS } from './duration.ts'
import { ExcludedDays } from './excluded-days.ts'
import { BEGIN_OF_TIME, END_OF_TIME } from './schedule.ts'
import type { LocalTime } from './zone.ts'

/**
 * Weekdays and dates come together again within 40 years (29 February on a Sunday is the rarest). So what nothing is left
 * of in the 41 years beyond the last day that is named, nothing is ever left of.
 */
const SEARCH_MS = 41 * 366 * DAY_MS
const MAX_LISTS = 256
const NO_PATTERNS: readonly CronPattern[] = []

/** What is left out by the clock on the wall: whole days, and times that match a pattern. */
export class ExcludedTimes {
  readonly days: ExcludedDays
  readonly #patterns: readonly CronPattern[]
  #month:
    | { year: number; month: number; key: string; partial: readonly (readonly [index: number, mask: Bits])[] }
    | undefined
  readonly #lists = new Map<string, readonly CronPattern[]>()

  constructor(days: ExcludedDays, patterns: readonly CronPattern[]) {
    this.days = days
    this.#patterns = patterns
  }

  get isEmpty(): boolean {
    return this.days.isEmpty && this.#patterns.length === 0
  }

  /** The patterns that match a day. Equal lists are the same list, so that what was found about one can be remembered. */
  patternsOn(year: number, month: number, day: number): readonly CronPattern[] {
    if (this.#patterns.length === 0) return NO_PATTERNS
    if (this.#month?.year !== year || this.#month.month !== month) this.#month = this.#readMonth(year, month)
    let { key } = this.#month
    for (const [index, mask] of this.#month.partial) if (hasBit(mask, day - 1)) key += `${index} `
    const known = this.#lists.get(key)
    if (known !== undefined) return known
    const matching = this.#patterns.filter((pattern) => hasBit(pattern.daysIn(year, month), day - 1))
    if (this.#lists.size >= MAX_LISTS) this.#lists.clear()
    this.#lists.set(key, matching)
    return matching
  }

  /** Most patterns match all days of a month or none, and are asked once for all of them. */
  #readMonth(year: number, month: number) {
    const all = 0x7fff_ffff >>> (31 - daysInMonth(year, month))
    const partial: [index: number, mask: Bits][] = []
    let key = ''
    for (const [index, pattern] of this.#patterns.entries()) {
      const mask = pattern.daysIn(year, month)
      if (mask === all) key += `${index} `
      else if (mask !== 0) partial.push([index, mask])
    }
    return { year, month, key: `${key}| `, partial }
  }

  /** How far a search that begins here has to go before it may say that there is nothing. */
  searchUntil(from: LocalTime): LocalTime {
    if (this.isEmpty) return END_OF_TIME + DAY_MS
    return Math.max(from, (this.days.named?.to ?? 0) * DAY_MS) + SEARCH_MS
  }

  /** The same for a search backwards. */
  searchFrom(until: LocalTime): LocalTime {
    if (this.isEmpty) return BEGIN_OF_TIME
    return Math.min(until, (this.days.named?.from ?? Number.POSITIVE_INFINITY) * DAY_MS) - SEARCH_MS
  }
}

export const NOTHING_EXCLUDED = new ExcludedTimes(new ExcludedDays([], 0), NO_PATTERNS)
