import type { Bound, BoundRole, Bounds } from './clauses.ts'
import { isAmount, readAmount } from './read-amount.ts'
import { comingMonthDays, isMonthDay, monthDayIn, readMonthDays, readMonths, readWeekdays } from './read-days.ts'
import { type NamedDay, readNamedDay } from './read-named-day.ts'
import { isTimeOfDay, readTimeOfDay } from './read-time-of-day.ts'
import { dateOf, monthAfter, type Today, weekdayFrom } from './today.ts'
import { NUMBERS } from './vocabulary.ts'
import type { Words } from './words.ts'

const MAX_RUNS = 2_147_483_647
const BEGIN = ['starting', 'beginning', 'counted', 'not']
const END = ['until', 'till', 'ending', 'before']

const REQUIRED: Record<string, string> = { counted: 'from', not: 'before' }
const ROLES: Record<string, BoundRole> = { counted: 'counted from', not: 'bounding' }

/** Reads `starting …`, `not before …`, `until …`, `for 10 times`, `for 2 weeks` if one begins here. */
export function readBound(words: Words, bounds: Bounds, today: Today): boolean {
  if (words.is(...BEGIN)) setStart(words, bounds, today)
  else if (words.is(...END)) setEnd(words, bounds, today)
  else if (words.is('for')) setLength(words, bounds)
  else if (words.is('twice') || isTimes(words)) setCount(words, bounds)
  else return false
  return true
}

function isTimes(words: Words): boolean {
  return (
    (words.peek()?.kind === 'number' || NUMBERS.has(words.word())) &&
    ['times', 'runs', 'time', 'run'].includes(words.word(1))
  )
}

export function setStart(words: Words, bounds: Bounds, today: Today): void {
  const token = words.take()
  if (bounds.start !== undefined) throw words.refuse(token, 'is one start too many')
  const joint = REQUIRED[token.word]
  if (joint !== undefined && !words.is(joint)) throw words.unexpected(`"${joint}"`)
  words.accept('from', 'before')
  words.accept('on', 'at')
  bounds.start = { ...readMoment(words, today), token, role: ROLES[token.word] ?? 'starting' }
}

export function setEnd(words: Words, bounds: Bounds, today: Today): void {
  const token = words.take()
  if (bounds.end !== undefined || bounds.length !== undefined) throw words.refuse(token, 'is one end too many')
  words.accept('on', 'at')
  const end = readMoment(words, today)
  if (end.day === undefined && end.offset === undefined) {
    throw words.refuse(token, 'needs a day: a time of every day is said as "between 9:00 and 17:00"')
  }
  bounds.end = { ...end, token, role: 'bounding' }
}

function setLength(words: Words, bounds: Bounds): void {
  const token = words.take()
  words.accept('the')
  words.accept('next')
  if (isTimes(words) || words.is('twice')) {
    setCount(words, bounds)
    return
  }
  if (bounds.end !== undefined || bounds.length !== undefined) throw words.refuse(token, 'is one end too many')
  if (!isAmount(words)) throw words.unexpected('"10 times" or an amount such as "2 weeks"')
  bounds.length = readAmount(words)
}

function setCount(words: Words, bounds: Bounds): void {
  const token = words.take()
  if (bounds.count !== undefined) throw words.refuse(token, 'is one count too many')
  const times = token.word === 'twice' ? 2 : (NUMBERS.get(token.word) ?? Number(token.word))
  if (token.word !== 'twice') words.take()
  if (words.is('a', 'an', 'per', 'every', 'each', 'daily')) {
    throw words.refuse(
      token,
      'counts how often in a while, which can be spread in many ways: say "every 4 hours" or the times',
    )
  }
  if (!Number.isInteger(times) || times < 1 || times > MAX_RUNS) {
    throw words.refuse(token, `is no number of times: it is a whole number from 1 to ${MAX_RUNS}`)
  }
  bounds.count = { token, times }
}

/** A day, a time, or both: `tomorrow`, `2026-12-01 at 9`, `in 2 hours`, `monday`. */
function readMoment(words: Words, today: Today): Omit<Bound, 'token' | 'role'> {
  const token = words.accept('now')
  if (token !== undefined) return { offset: { months: 0, days: 0, ms: 0, token } }
  if (words.accept('in')) return { offset: readAmount(words) }
  if (isTimeOfDay(words) && words.peek()?.kind !== 'number') return { time: readTimeOfDay(words) }
  const day = readAnyDay(words, today)
  if (day === undefined) {
    if (isTimeOfDay(words)) return { time: readTimeOfDay(words) }
    throw words.unexpected('a day such as "tomorrow", "monday" or "2026-12-01"')
  }
  const position = words.position
  words.accept('at')
  if (!isTimeOfDay(words)) {
    words.returnTo(position)
    return { day }
  }
  const time = readTimeOfDay(words)
  complainAboutSecondTime(words)
  return { day, time }
}

/** `until 31 march at 9 and 17:30`: a bound has one time, so these are times of day. */
function complainAboutSecondTime(words: Words): void {
  const position = words.position
  if (words.accept(',', 'and') !== undefined) {
    words.accept('and')
    const token = words.peek()
    if (token !== undefined && isTimeOfDay(words)) {
      throw words.refuse(token, 'is a second time after a bound: say the times of day before "starting" and "until"')
    }
  }
  words.returnTo(position)
}

function readAnyDay(words: Words, today: Today): NamedDay | undefined {
  const named = words.follows('the') && words.word(1) !== 'day' ? undefined : readNamedDay(words, today)
  if (named !== undefined) return named
  const token = words.peek()
  if (token === undefined) return undefined
  const weekdays = readWeekdays(words)
  if (weekdays !== undefined) {
    if (weekdays.days.length > 1) throw words.refuse(token, 'begins several days: one is needed here')
    return { token, candidates: [weekdayFrom(today.day, weekdays.days[0] as number)] }
  }
  return isMonthDay(words) ? readOrdinalDay(words, today) : undefined
}

/** `the 1st`, `the first of next month`, `the last day of march`. */
function readOrdinalDay(words: Words, today: Today): NamedDay {
  const { token, days } = readMonthDays(words)
  const [which] = days
  if (which === undefined || days.length > 1) throw words.refuse(token, 'begins several days: one is needed here')
  const position = words.position
  words.accept('of')
  const relative = words.acceptAll('next', 'month') ? 1 : words.acceptAll('this', 'month') ? 0 : undefined
  const months = relative === undefined ? readMonths(words)?.list : undefined
  if (relative === undefined && months === undefined) words.returnTo(position)
  const candidates =
    relative === undefined
      ? comingMonthDays(today, which, months)
      : [monthDayIn(monthAfter(dateOf(today.day), relative), which)].filter((day) => day !== undefined)
  if (candidates.length === 0) throw words.refuse(token, 'is a day that the month does not have')
  return { token, candidates }
}
