import type { Exclusion, ResolvedExclusion } from '../job/definition.ts'
import { remembered } from '../runtime/maps.ts'
import { type CalendarDay, parseDay } from './calendar-day.ts'
import type { InstantRange } from './closed-instants.ts'
import { CronPattern } from './cron-pattern.ts'
import { canonicalCron } from './cron-text.ts'
import { type DayRange, ExcludedDays, mergedRanges } from './excluded-days.ts'
import { notUnderstood, shown } from './not-understood.ts'

export interface Excluded {
  days: ExcludedDays
  patterns: readonly CronPattern[]
  instants: readonly InstantRange[]
}

const NOTHING: Excluded = { days: new ExcludedDays([], 0), patterns: [], instants: [] }

type Exclusions = readonly (ResolvedExclusion | Exclusion)[]

/** Lists are never changed once they are made, and calendars may hold thousands of days: each is read once. */
const knownLists = new WeakMap<Exclusions, Excluded>()
const knownDays = new WeakMap<readonly string[], readonly DayRange[]>()

/** Everything that a schedule leaves out. Throws for days that do not exist, and for ranges that run backwards. */
export function readExclusions(exclude: Exclusions | undefined): Excluded {
  if (exclude === undefined || exclude.length === 0) return NOTHING
  return remembered(knownLists, exclude, () => readList(exclude))
}

function readList(exclude: Exclusions): Excluded {
  const ranges: DayRange[] = []
  const patterns: CronPattern[] = []
  const instants: InstantRange[] = []
  let weekend = 0
  for (const one of exclude) {
    if ('calendar' in one) throw notUnderstood(`the calendar ${shown(one.calendar)} has not been looked up`)
    if ('cron' in one) patterns.push(excludedPattern(one.cron))
    else if ('fromAt' in one) instants.push(readInstantRange(one))
    else if ('days' in one) {
      for (const range of daysOf(one.days)) ranges.push(range)
      for (const weekday of one.weekend) weekend |= 1 << weekday
    } else ranges.push('date' in one ? oneDay(parseDay(one.date)) : readDayRange(one))
  }
  return { days: new ExcludedDays(ranges, weekend), patterns, instants }
}

const daysOf = (days: readonly string[]): readonly DayRange[] =>
  remembered(knownDays, days, () => mergedRanges(days.map((text) => oneDay(parseDay(text)))))

/** An expression of five fields leaves out whole minutes, one of six seconds. */
function excludedPattern(cron: string): CronPattern {
  const canonical = canonicalCron(cron)
  if (canonical.split(' ').length === 6) return new CronPattern(canonical)
  return new CronPattern(`${cron.trim().split(/\s+/).length === 6 ? '0' : '*'} ${canonical}`)
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
