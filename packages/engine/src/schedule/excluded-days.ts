import { type Bits, hasBit } from './bits.ts'
import { type CalendarDay, weekdayOf } from './calendar-day.ts'

export interface DayRange {
  from: CalendarDay
  /** The last of them. */
  to: CalendarDay
}

const WHOLE_WEEK: Bits = 0b111_1111

/** Days that are left out: ranges of them, and weekdays for ever. */
export class ExcludedDays {
  /** In order, and neither touching nor overlapping. */
  readonly #ranges: readonly DayRange[]
  /** Bit 0 is Sunday. */
  readonly #weekend: Bits

  constructor(ranges: readonly DayRange[], weekend: Bits) {
    this.#ranges = mergedRanges(ranges)
    this.#weekend = weekend
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0 && this.#weekend === 0
  }

  /** From the first to the last day that is named; nothing but weekends is left out before and after. */
  get named(): DayRange | null {
    const first = this.#ranges[0]
    const last = this.#ranges.at(-1)
    return first === undefined || last === undefined ? null : { from: first.from, to: last.to }
  }

  has(day: CalendarDay): boolean {
    return hasBit(this.#weekend, weekdayOf(day)) || this.#rangeAt(day) !== undefined
  }

  /** The first day at or after another that is not left out; null if all are. */
  openFrom(day: CalendarDay): CalendarDay | null {
    if (this.#weekend === WHOLE_WEEK) return null
    let open = day
    for (;;) {
      const range = this.#rangeAt(open)
      if (range !== undefined) open = range.to + 1
      else if (hasBit(this.#weekend, weekdayOf(open))) open++
      else return open
    }
  }

  /** The last day at or before another that is not left out; null if all are. */
  openUntil(day: CalendarDay): CalendarDay | null {
    if (this.#weekend === WHOLE_WEEK) return null
    let open = day
    for (;;) {
      const range = this.#rangeAt(open)
      if (range !== undefined) open = range.from - 1
      else if (hasBit(this.#weekend, weekdayOf(open))) open--
      else return open
    }
  }

  /** The first stretch of more than `most` days in a row that are left out; null if there is none. */
  longerThan(most: number): DayRange | null {
    if (this.#weekend === WHOLE_WEEK) return { from: 0, to: Number.POSITIVE_INFINITY }
    let known = Number.NEGATIVE_INFINITY
    for (const range of this.#ranges) {
      if (range.to < known) continue
      const before = this.openUntil(range.from) as CalendarDay
      known = this.openFrom(range.from) as CalendarDay
      if (known - before - 1 > most) return { from: before + 1, to: known - 1 }
    }
    return null
  }

  #rangeAt(day: CalendarDay): DayRange | undefined {
    const ranges = this.#ranges
    let low = 0
    let high = ranges.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((ranges[middle] as DayRange).to < day) low = middle + 1
      else high = middle
    }
    const range = ranges[low]
    return range !== undefined && range.from <= day ? range : undefined
  }
}

/** In order, and neither touching nor overlapping. */
export function mergedRanges(ranges: readonly DayRange[]): readonly DayRange[] {
  const result: DayRange[] = []
  for (const range of [...ranges].sort((one, other) => one.from - other.from)) {
    const last = result.at(-1)
    if (last !== undefined && range.from <= last.to + 1) last.to = Math.max(last.to, range.to)
    else result.push({ ...range })
  }
  return result
}
