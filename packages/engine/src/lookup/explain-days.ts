import type { Calendar, ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { END_OF_TIME } from '../schedule/schedule.ts'
import type { Range } from './filter.ts'

/** Reading this many days takes some 40 ms. Calendars may hold ten times as many, of which one question needs few. */
const MAX_DAYS = 20_000
/** Whatever a schedule does because of a day, it does within a year of it. */
const MARGIN_MS = 400 * DAY_MS
/** What one page looks at, if the days are too many for all of it. */
export const LONGEST_MS = 366 * DAY_MS

/** Whether only the days around a question are read, and so nothing further away may be asked. */
export const areManyDays = (calendars: Iterable<Calendar>): boolean => {
  let days = 0
  for (const calendar of calendars) days += calendar.days.length
  return days > MAX_DAYS
}

/** The schedule with those of its calendars' days that matter in a range. */
export function withDaysAround(spec: ResolvedSpec, { from, to }: Range): ResolvedSpec {
  if (spec.exclude === undefined) return spec
  const first = dayOf(from - MARGIN_MS)
  const last = dayOf(Math.min(to, from + LONGEST_MS) + MARGIN_MS)
  // A day that several calendars have is left to the first of them.
  const seen = new Set<string>()
  const isNew = (day: string): boolean => day >= first && day <= last && seen.size < seen.add(day).size
  const exclude = spec.exclude.map((one) => ('days' in one ? { ...one, days: one.days.filter(isNew) } : one))
  return { ...spec, exclude }
}

const dayOf = (at: Instant): string => new Date(Math.min(Math.max(at, 0), END_OF_TIME - 1)).toISOString().slice(0, 10)
