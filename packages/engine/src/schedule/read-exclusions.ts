import type { Exclusion, ResolvedExclusion } from '../job/definition.ts'
import { type CalendarDay, parseDay } from './calendar-day.ts'
import type { InstantRange } from './closed-instants.ts'
import { CronPattern } from './cron-pattern.ts'
import { canonicalCron } from './cron-text.ts'
import { type DayRange, ExcludedDays } from './excluded-days.ts'
import { notUnderstood, shown } from './not-understood.ts'

export interface Excluded {
  days: ExcludedDays
  patterns: readonly CronPattern[]
  instants: readonly InstantRange[]
}

const NOTHING: Excluded = { days: new ExcludedDays([], 0), patterns: [], instants: [] }

/** Everything that a schedule leaves out. Throws for days that do not exist, and for ranges that run backwards. */
export function readExclusions(exclude: readonly (ResolvedExclusion | Exclusion)[] | undefined): Excluded {
  if (exclude === undefined || exclude.length === 0) return NOTHING
  const ranges: DayRange[] = []
  const patterns: CronPattern[] = []
  const instants: InstantRange[] = []
  let weekend = 0
  for (const one of exclude) {
    if ('calendar' in one) throw notUnderstood(`the calendar ${shown(one.calendar)} has not been looked up`)
    if ('cron' in one) patterns.push(excludedPattern(one.cron))
    else if ('fromAt' in one) instants.push(readInstantRange(one))
    else if ('days' in one) {
      ranges.push(...one.days.map((text) => oneDay(parseDay(text))))
      for (const weekday of one.weekend) weekend |= 1 << weekday
    } else ranges.push('date' in one ? oneDay(parseDay(one.date)) : readDayRange(one))
  }
  return { days: new ExcludedDays(ranges, weekend), patterns, instants }
}

/** An expression of five fields leaves out whole minutes, one of six seconds. */
function excludedPattern(cron: string): CronPattern {
  const canonical = canonicalCron(cron)
  return new CronPattern(canonical.split(' ').length === 5 ? `* ${canonical}` : canonical)
}

function oneDay(day: CalendarDay): DayRange {
  return { from: day, to: day }
}

function readDayRange({ from, to }: { from: string; to: string }): DayRange {
  const range = { from: parseDay(from), to: parseDay(to) }
  if (range.to < range.from) throw notUnderstood(`the days from ${from} to ${to} run backwards`)
  return range
}

function readInstantRange({ fromAt, toAt }: InstantRange): InstantRange {
  if (toAt <= fromAt) throw notUnderstood('an excluded time must end after it begins')
  return { fromAt, toAt }
}
