import { DAY_MS, formatDuration } from '../duration.ts'
import type { Clauses, Frequency } from './clauses.ts'
import { clockFrequency } from './clock-frequency.ts'
import { cronDays } from './cron-days.ts'
import { fixedTimes } from './cron-times.ts'
import { CLOCK_MS, DAYS, MONTHS_OF } from './read-amount.ts'
import { inPart } from './read-time-of-day.ts'
import { expressions, type Meaning, type Recurrence } from './recurrence.ts'
import type { Start } from './resolve-bounds.ts'
import { dateOf, dayIn, instantAt, monthAfter, weekdayFrom, weekdayOf } from './today.ts'
import type { Words } from './words.ts'

/** The frequency that was said, or that the days imply; nothing, if the text means one moment. */
export function frequencyOf({ frequency, weekdays, scope, months }: Clauses): Frequency | undefined {
  if (frequency !== undefined) return frequency
  if (months?.isRecurring) return { token: months.token, count: 1, unit: 'year' }
  if (weekdays?.isRecurring) return { token: weekdays.token, count: 1, unit: 'week' }
  return scope?.kind === 'every' ? { token: scope.token, count: 1, unit: 'month' } : undefined
}

export function recurringOf(recurrence: Recurrence): Meaning {
  const { words, clauses, frequency } = recurrence
  complainAboutOnce(recurrence)
  if (recurrence.start?.role === 'counted from') return anchored(recurrence, recurrence.start)
  const { unit } = frequency
  if (unit === 'second' || unit === 'minute' || unit === 'hour') return clockFrequency(recurrence, unit)
  const clock = clauses.window ?? clauses.minutes
  if (clock !== undefined) {
    throw words.refuse(clock.token, `needs something smaller than a ${unit}: say "every hour" or "every 15 minutes"`)
  }
  if (!isCron(recurrence)) return interval(recurrence)
  const days = cronDays(words, clauses, frequency, recurrence.begun)
  return { cron: expressions(days, fixedTimes(times(recurrence).map(wholeSecond))) }
}

/** Not before a start that lies within a second. */
function wholeSecond(ms: number): number {
  return (Math.ceil(ms / 1_000) * 1_000) % DAY_MS
}

/** `counted from`: nothing else may say when. */
function anchored({ words, clauses, frequency }: Recurrence, start: Start): Meaning {
  const other = Object.values(clauses).find((clause) => clause !== undefined && clause !== clauses.frequency)
  if (other !== undefined) throw words.refuse(other.token, 'cannot narrow an interval that is counted from a moment')
  return { every: durationOf(frequency), startAt: start.at }
}

function durationOf({ unit, count }: Frequency): string {
  const ms = count * (CLOCK_MS[unit] ?? 0)
  if (ms > 0) return formatDuration({ kind: 'clock', ms })
  return formatDuration({
    kind: 'date',
    months: count * (MONTHS_OF[unit] ?? 0),
    days: count * (DAYS[unit] ?? 0),
    ms,
  })
}

function complainAboutOnce({ words, clauses }: Recurrence): void {
  const { now, offset, scope } = clauses
  const once = now ?? offset ?? (scope?.kind === 'every' ? undefined : scope)
  if (once !== undefined)
    throw words.refuse(once.token, 'is one moment, and "every" means many: say "starting" before it')
}

/** Days and weeks beyond one have no place in a cron expression; months have if they divide the year. */
function isCron({ clauses, frequency: { unit, count }, begun }: Recurrence): boolean {
  if (unit === 'year' && isLeapDay(begun) && (clauses.dates ?? clauses.monthDays ?? clauses.months) === undefined)
    return false
  if (unit === 'day' || unit === 'week' || unit === 'year') return count === 1
  const months = unit === 'quarter' ? count * 3 : count
  if (months >= 12 || 12 % months !== 0) return false
  // An interval knows what becomes of the 31st in February, a cron expression leaves it out.
  return clauses.monthDays !== undefined || begun?.day === undefined || dateOf(begun.day).date <= 28
}

/** `every year starting on 29 february 2028` is every year; `every year on 29 february` names the day. */
function isLeapDay(begun: Start | undefined): boolean {
  const { month, date } = begun?.day === undefined ? { month: 0, date: 0 } : dateOf(begun.day)
  return month === 2 && date === 29
}

/** Times of day; without any the start of the day, or the time at which it shall start. */
function times({ words, clauses, begun }: Recurrence): number[] {
  const { part } = clauses
  if (clauses.times === undefined) {
    if (part !== undefined) throw words.refuse(part.token, 'needs a time: say "at 8:00"')
    return [begun?.timeMs ?? 0]
  }
  return clauses.times.list.map((time) => {
    const { ms } = part === undefined ? time : inPart(words, time, part.part)
    if (ms === DAY_MS && (clauses.weekdays ?? clauses.monthDays ?? clauses.dates) !== undefined) {
      throw words.refuse(time.token, 'belongs to the next day: say "at 00:00" and that day')
    }
    if (ms % 1_000 !== 0) throw words.refuse(time.token, 'is finer than a second')
    return ms % DAY_MS
  })
}

function interval(recurrence: Recurrence): Meaning {
  const { words, clauses, frequency, today, start } = recurrence
  const [timeMs = 0, second] = times(recurrence)
  if (second !== undefined) {
    throw words.refuse(
      clauses.times?.list[1]?.token ?? frequency.token,
      'is one time too many: such an interval has one',
    )
  }
  if (clauses.months !== undefined) throw words.refuse(clauses.months.token, 'cannot narrow an interval')
  const from = start?.day ?? today.day
  const notBefore = start?.at ?? today.now
  const first = firstDays(recurrence, from).find((day) => instantAt(today, day, timeMs) >= notBefore)
  if (first === undefined) throw words.refuse(frequency.token, 'has no first time')
  return { every: durationOf(frequency), startAt: instantAt(today, first, timeMs) }
}

/** The days on which the interval may begin, soonest first. */
function firstDays({ words, clauses, frequency, begun }: Recurrence, from: number): number[] {
  const { unit, token } = frequency
  const { weekdays, monthDays, dates } = clauses
  if (unit === 'day' || unit === 'week') {
    const beside = monthDays ?? dates ?? (unit === 'day' ? weekdays : undefined)
    if (beside !== undefined) throw words.refuse(beside.token, `cannot narrow an interval of ${unit}s`)
    if (unit === 'day') return [from, from + 1, from + 2]
    const [weekday = begun?.day === undefined ? 1 : weekdayOf(begun.day), second] = weekdays?.days ?? []
    if (second !== undefined)
      throw words.refuse(weekdays?.token ?? token, 'begins several days: such an interval has one')
    const first = weekdayFrom(from, weekday)
    return [first, first + 7]
  }
  if (weekdays !== undefined) throw words.refuse(weekdays.token, 'cannot narrow an interval of months')
  return unit === 'year' && monthDays === undefined
    ? yearlyDays(words, clauses, begun, from)
    : monthlyDays(words, clauses, begun, from)
}

function yearlyDays(words: Words, { dates }: Clauses, start: Start | undefined, from: number): number[] {
  const [day, second] = dates?.days ?? []
  if (second !== undefined) throw words.refuse(second.token, 'is one day too many: such an interval has one')
  if (day !== undefined && day.yearly === undefined)
    throw words.refuse(day.token, 'is one day: say "starting" before it')
  const begun = start?.day === undefined ? { month: 1, date: 1 } : dateOf(start.day)
  const { month, date } = day?.yearly ?? begun
  const { year } = dateOf(from)
  const years = Array.from({ length: 9 }, (_, ahead) => dayIn({ year: year + ahead, month }, date))
  return years.filter((found) => found !== undefined)
}

function monthlyDays(words: Words, { monthDays, dates }: Clauses, start: Start | undefined, from: number): number[] {
  if (dates !== undefined) throw words.refuse(dates.token, 'cannot narrow an interval of months')
  const date = start?.day === undefined ? 1 : dateOf(start.day).date
  const { token, days } = monthDays ?? { token: undefined, days: [{ kind: 'date' as const, date }] }
  const [which, second] = days
  if (token !== undefined && (which?.kind !== 'date' || second !== undefined)) {
    throw words.refuse(token, 'cannot begin such an interval: it has one day, such as "the 1st"')
  }
  // Of three months in a row one has 31 days.
  const months = Array.from({ length: 3 }, (_, ahead) => monthAfter(dateOf(from), ahead))
  const found = months.map((month) => dayIn(month, which?.kind === 'date' ? which.date : date))
  return found.filter((day) => day !== undefined)
}
