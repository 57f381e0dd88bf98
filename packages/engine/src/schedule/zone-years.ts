import type { Instant } from '../runtime/clock.ts'
import { remembered } from '../runtime/maps.ts'
import { dateOf, dayOf, daysInMonth, weekdayOf } from './calendar-day.ts'
import { DAY_MS } from './duration.ts'
import { BEGIN_OF_TIME, END_OF_TIME } from './schedule.ts'
import type { ZoneOffsets } from './zone-offsets.ts'

/** A stretch of time in which the offset of a zone does not change. */
export interface Stretch {
  from: Instant
  /** The first instant that is no longer in it. */
  until: Instant
  /** Local time minus UTC, in milliseconds. */
  offset: number
  /** The offset just before `from`: greater where the clocks go back then, smaller where they leave something out. */
  offsetBefore: number
  /** The offset from `until` on. */
  offsetAfter: number
}

/** Two changes of a zone that are nearer than this would be missed. From 1970 to 2100 the nearest are almost a week apart. */
const PROBE_MS = 2 * DAY_MS
/** Few questions concern more than a hundred years, which take about 40 KB. */
const MAX_YEARS = 128
/** Before and after these, nothing fires and nothing changes. */
const FIRST_YEAR = yearOf(BEGIN_OF_TIME)
const LAST_YEAR = yearOf(END_OF_TIME)

/**
 * Nobody knows the clocks of the far future: the zone data goes on with one rule for all years. So years that begin on the
 * same weekday and are equally long are alike, and one of each kind is looked at, in the first 28 after the last exception.
 */
const FIRST_OF_RULE = 2101
/** From here on a zone usually has that rule already, and only exceptions (Morocco's, until 2087) have to be ruled out. */
const USUALLY_RULED = 2038
/** An exception lasts for weeks. */
const SPARSE_PROBE_MS = 12 * DAY_MS

/** The changes of a zone's clocks, year by year of UTC. What was asked for is remembered. */
export class ZoneYears {
  readonly #offsets: ZoneOffsets
  readonly #years = new Map<number, readonly Stretch[]>()
  /** By their kind. */
  readonly #models = new Map<number, { begin: Instant; stretches: readonly Stretch[] }>()

  constructor(offsets: ZoneOffsets) {
    this.#offsets = offsets
  }

  stretchAt(instant: Instant): Stretch {
    const year = yearOf(Math.min(END_OF_TIME, Math.max(BEGIN_OF_TIME, instant)))
    let stretches = this.#years.get(year)
    if (stretches === undefined) {
      stretches = edged(year, this.#stretchesOf(year))
      if (this.#years.size >= MAX_YEARS) this.#years.clear()
      this.#years.set(year, stretches)
    }
    return stretches.find(({ until }) => instant < until) as Stretch
  }

  #stretchesOf(year: number): readonly Stretch[] {
    if (year < USUALLY_RULED) return this.#look(year)
    const ruled = this.#byRule(year)
    return year >= FIRST_OF_RULE || this.#agrees(ruled) ? ruled : this.#look(year)
  }

  #byRule(year: number): readonly Stretch[] {
    const kind = kindOf(year)
    const model = remembered(this.#models, kind, () => {
      let alike = FIRST_OF_RULE
      while (kindOf(alike) !== kind) alike++
      return { begin: beginOf(alike), stretches: this.#look(alike) }
    })
    const shift = beginOf(year) - model.begin
    return model.stretches.map((one) => ({ ...one, from: one.from + shift, until: one.until + shift }))
  }

  #agrees(stretches: readonly Stretch[]): boolean {
    return stretches.every(({ from, until, offset, offsetBefore, offsetAfter }) => {
      for (let probe = from; probe < until; probe += SPARSE_PROBE_MS) {
        if (this.#offsets.at(probe) !== offset) return false
      }
      const { at } = this.#offsets
      return at(from - 1) === offsetBefore && at(until - 1) === offset && at(until) === offsetAfter
    })
  }

  #look(year: number): readonly Stretch[] {
    const begin = beginOf(year)
    const end = beginOf(year + 1)
    const stretches: Stretch[] = []
    let from = begin
    let offset = this.#offsets.at(begin)
    let offsetBefore = this.#offsets.at(begin - 1)
    for (let early = begin; early < end; early += PROBE_MS) {
      const late = Math.min(end, early + PROBE_MS)
      const offsetAfter = this.#offsets.at(late)
      if (offsetAfter === offset) continue
      const until = this.#offsets.changeBetween(early, late)
      // A change exactly at the end begins the next year.
      if (until === end) break
      stretches.push({ from, until, offset, offsetBefore, offsetAfter })
      from = until
      offsetBefore = offset
      offset = offsetAfter
    }
    stretches.push({ from, until: end, offset, offsetBefore, offsetAfter: this.#offsets.at(end) })
    return stretches
  }
}

/** The first and the last year go on for ever. */
function edged(year: number, stretches: readonly Stretch[]): readonly Stretch[] {
  if (year !== FIRST_YEAR && year !== LAST_YEAR) return stretches
  const inner = { first: stretches[0] as Stretch, last: stretches.at(-1) as Stretch }
  return stretches.map((one) => ({
    ...one,
    ...(year === FIRST_YEAR && one === inner.first && { from: Number.NEGATIVE_INFINITY, offsetBefore: one.offset }),
    ...(year === LAST_YEAR && one === inner.last && { until: Number.POSITIVE_INFINITY, offsetAfter: one.offset }),
  }))
}

function yearOf(instant: Instant): number {
  return dateOf(Math.floor(instant / DAY_MS)).year
}

function beginOf(year: number): Instant {
  return dayOf(year, 1, 1) * DAY_MS
}

function kindOf(year: number): number {
  return weekdayOf(dayOf(year, 1, 1)) + 7 * (daysInMonth(year, 2) - 28)
}
