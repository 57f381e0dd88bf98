import type { Instant } from '../../runtime/clock.ts'
import { DAY_MS, MAX_DURATION_MS } from '../duration.ts'
import type { Bounds, Clauses } from './clauses.ts'
import { comingMonthDays, monthDayIn } from './read-days.ts'
import type { NamedDay } from './read-named-day.ts'
import { inPart, type TimeOfDay } from './read-time-of-day.ts'
import { after, timeMsOf } from './resolve-bounds.ts'
import { addToLocal, type Day, dateOf, instantAt, monthAfter, type Today, weekdayFrom, weekdayOf } from './today.ts'
import type { Token } from './tokens.ts'
import type { Words } from './words.ts'

/** The one moment that is meant. A day without a time is its first moment; a moment without a day is the next such. */
export function onceOf(words: Words, clauses: Clauses, bounds: Bounds, today: Today): Instant {
  const bound = bounds.start ?? bounds.end ?? bounds.count ?? bounds.length
  if (bound !== undefined) throw words.refuse(bound.token, 'needs something that recurs: say "every" and how often')
  const at = momentOf(words, clauses, today)
  if (at - today.now > MAX_DURATION_MS) throw words.refuse(anyToken(clauses), 'lies more than 100 years ahead')
  return at
}

function momentOf(words: Words, clauses: Clauses, today: Today): Instant {
  const { now, offset, dates, weekdays } = clauses
  const clock = clauses.window ?? clauses.minutes
  if (clock !== undefined)
    throw words.refuse(clock.token, 'needs something that recurs: say "every hour" or "every 15 minutes"')
  if (now !== undefined) {
    complainAbout(words, clauses, ['now'], 'now')
    return today.now
  }
  if (offset !== undefined) return offsetOf(words, clauses, today)
  const day = theOne(words, dates)
  if (day?.time !== undefined && 'instant' in day.time) {
    complainAbout(words, clauses, ['dates'], day.token.raw)
    return notPast(words, day.token, [day.time.instant], today)
  }
  const time = timeOf(words, clauses, day)
  const token = day?.token ?? weekdays?.token ?? clauses.monthDays?.token ?? clauses.times?.token ?? anyToken(clauses)
  const candidates = candidatesOf(words, clauses, day, today)
  if (time === undefined && candidates.length === 1 && candidates[0] === today.day) {
    throw words.refuse(token, 'needs a time: say "at 17:30"')
  }
  return notPast(
    words,
    token,
    candidates.map((candidate) => instantAt(today, candidate, time ?? 0)),
    today,
  )
}

function notPast(words: Words, token: Token, instants: readonly Instant[], today: Today): Instant {
  const at = instants.find((instant) => instant >= today.now)
  if (at !== undefined) return at
  const now = new Date(today.localNow).toISOString().slice(0, 16).replace('T', ' ')
  throw words.refuse(token, `lies in the past: it is ${now} in ${today.zone.name}`)
}

function offsetOf(words: Words, clauses: Clauses, today: Today): Instant {
  const offset = clauses.offset as NonNullable<Clauses['offset']>
  complainAbout(words, clauses, ['offset', 'times', 'part'], 'in')
  const time = timeOf(words, clauses, undefined)
  if (time === undefined) return after(today, today.now, offset)
  if (offset.ms > 0) throw words.refuse(clauses.times?.token as Token, 'is one time too many after "in"')
  const day = Math.floor(addToLocal(today.localNow, offset) / DAY_MS)
  return notPast(words, offset.token, [instantAt(today, day, time)], today)
}

function timeOf(words: Words, { times, part }: Clauses, day: NamedDay | undefined): number | undefined {
  const [time, second] = times?.list ?? []
  if (second !== undefined)
    throw words.refuse(second.token, 'is one time too many: something that happens once has one')
  const token = part?.token ?? (day?.part === undefined ? undefined : day.token)
  if (time === undefined && token !== undefined) throw words.refuse(token, 'needs a time: say "at 9:00"')
  const placed: TimeOfDay | undefined = time === undefined || part === undefined ? time : inPart(words, time, part.part)
  return timeMsOf(words, day, placed)
}

function theOne(words: Words, dates: Clauses['dates']): NamedDay | undefined {
  const [day, second] = dates?.days ?? []
  if (second !== undefined) throw words.refuse(second.token, 'is one day too many: something that happens once has one')
  return day
}

/** The days that may be meant, soonest first. */
function candidatesOf(words: Words, clauses: Clauses, day: NamedDay | undefined, today: Today): readonly Day[] {
  const { weekdays, monthDays, months, scope } = clauses
  if (day !== undefined) {
    complainAbout(words, clauses, ['dates', 'times', 'part', 'weekdays'], day.token.raw)
    if (weekdays === undefined) return day.candidates
    const only = oneWeekday(words, weekdays)
    if (day.weekOf !== undefined) return [weekdayFrom(day.weekOf, only)]
    const matching = day.candidates.filter((candidate) => weekdayOf(candidate) === only)
    if (matching.length === 0) throw words.refuse(weekdays.token, 'is not the weekday of that day')
    return matching
  }
  if (weekdays !== undefined) {
    complainAbout(words, clauses, ['weekdays', 'times', 'part'], weekdays.token.raw)
    const next = weekdayFrom(today.day, oneWeekday(words, weekdays))
    return [next, next + 7]
  }
  if (monthDays === undefined) {
    if (months !== undefined)
      throw words.refuse(months.token, 'needs a day: say "on 2 january" or "every day in january"')
    return [today.day, today.day + 1]
  }
  const [which, second] = monthDays.days
  if (which === undefined || second !== undefined) {
    throw words.refuse(monthDays.token, 'begins several days: say "of every month", or only one of them')
  }
  if (scope !== undefined) {
    const month = monthAfter(dateOf(today.day), scope.kind === 'next' ? 1 : 0)
    const found = monthDayIn(month, which)
    if (found === undefined) throw words.refuse(monthDays.token, 'is a day that the month does not have')
    return [found]
  }
  if (which.kind !== 'date' && months === undefined) {
    throw words.refuse(monthDays.token, 'lies in the past, or lacks its month: say "of every month" or "of next month"')
  }
  return comingMonthDays(today, which, months?.list)
}

function oneWeekday(words: Words, { token, days }: NonNullable<Clauses['weekdays']>): number {
  if (days.length > 1) throw words.refuse(token, 'begins several days: say "every" before them, or only one of them')
  return days[0] as number
}

/** Complains about the first clause that cannot stand beside the others. */
function complainAbout(words: Words, clauses: Clauses, allowed: (keyof Clauses)[], beside: string): void {
  for (const key of Object.keys(clauses) as (keyof Clauses)[]) {
    const clause = clauses[key]
    if (clause === undefined || allowed.includes(key)) continue
    throw words.refuse(clause.token, `cannot stand beside ${JSON.stringify(beside)}`)
  }
}

function anyToken(clauses: Clauses): Token {
  return (Object.values(clauses)[0] as { token: Token }).token
}
