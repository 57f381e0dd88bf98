import { DAY_MS } from '../schedule/duration.ts'
import { dayOf } from './calendar-day.ts'
import { type ContentLine, cut, ICalendarProblem } from './icalendar-lines.ts'
import { readICalendarTime } from './icalendar-time.ts'

const WEEKDAYS = ['SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA']
const UNDERSTOOD = 'FREQ=YEARLY with INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY and BYDAY is understood'
const MAX_INTERVAL = 1_000
const MAX_COUNT = 10_000

/** A rule of the kind that public holidays have: a date, or a weekday of a month, every year. */
export interface YearlyRule {
  interval: number
  count: number
  /** The last day that may be one, counted from 1970. */
  until: number
  months: readonly number[] | null
  /** Negative ones are counted from the end of the month. */
  monthDays: readonly number[] | null
  /** Null: every such weekday. Without months, `nth` counts within the year. */
  weekdays: readonly { weekday: number; nth: number | null }[] | null
}

export function readYearlyRule({ line, value }: ContentLine): YearlyRule {
  const read: YearlyRule = {
    interval: 1,
    count: MAX_COUNT,
    until: Number.POSITIVE_INFINITY,
    months: null,
    monthDays: null,
    weekdays: null,
  }
  const parts = new Map<string, string>()
  for (const part of value.toUpperCase().split(';')) {
    const [key = '', text = '', ...more] = part.split('=')
    if (text === '' || more.length > 0 || parts.has(key))
      throw new ICalendarProblem(line, `${cut(part)} is no part of an RRULE`)
    parts.set(key, text)
  }
  const frequency = parts.get('FREQ')
  if (frequency !== 'YEARLY')
    throw new ICalendarProblem(line, `RRULE with FREQ=${frequency ?? '(none)'} cannot be expanded: ${UNDERSTOOD}`)
  for (const [key, text] of parts) readPart(read, key, text, line)
  return read
}

function readPart(rule: YearlyRule, key: string, text: string, line: number): void {
  const whole = (from: number, to: number) => numberFrom(key, text, from, to, line)
  const list = (from: number, to: number) => text.split(',').map((item) => numberFrom(key, item, from, to, line))
  if (key === 'FREQ' || key === 'WKST') return
  if (key === 'INTERVAL') rule.interval = whole(1, MAX_INTERVAL)
  else if (key === 'COUNT') rule.count = whole(1, MAX_COUNT)
  else if (key === 'UNTIL') rule.until = Math.floor(readICalendarTime(text, line).at / DAY_MS)
  else if (key === 'BYMONTH') rule.months = list(1, 12)
  else if (key === 'BYMONTHDAY') rule.monthDays = list(-31, 31)
  else if (key === 'BYDAY') rule.weekdays = text.split(',').map((item) => weekdayOf(item, line))
  else throw new ICalendarProblem(line, `RRULE with ${cut(key)} cannot be expanded: ${UNDERSTOOD}`)
}

function numberFrom(key: string, text: string, from: number, to: number, line: number): number {
  const value = /^[+-]?\d{1,5}$/.test(text) ? Number(text) : 0
  if (value === 0 || value < from || value > to)
    throw new ICalendarProblem(line, `${key} must be a whole number from ${from} to ${to} and not 0, not ${cut(text)}`)
  return value
}

function weekdayOf(text: string, line: number): { weekday: number; nth: number | null } {
  const match = /^([+-]?\d{1,2})?(SU|MO|TU|WE|TH|FR|SA)$/.exec(text)
  const nth = match?.[1] === undefined ? null : Number(match[1])
  if (!match || nth === 0) throw new ICalendarProblem(line, `BYDAY must be such as MO, 4TH or -1MO, not ${cut(text)}`)
  return { weekday: WEEKDAYS.indexOf(match[2] as string), nth }
}

/** The days of the rule from its first on, as days since 1970, up to and without the year `before`. */
export function* daysOfRule(rule: YearlyRule, first: number, before: number): Generator<number> {
  const start = new Date(first * DAY_MS)
  const isPlain = rule.monthDays === null && rule.weekdays === null
  const monthDays = isPlain ? [start.getUTCDate()] : rule.monthDays
  const months = rule.months ?? (isPlain ? [start.getUTCMonth() + 1] : null)
  // Looked at first, since it leaves most days out.
  const onWeekday = Array.from({ length: 7 }, (_, day) => rule.weekdays?.some(({ weekday }) => weekday === day) ?? true)
  let left = rule.count
  for (let year = start.getUTCFullYear(); year < before; year += rule.interval) {
    const ofYear = [boundsOf(year, 1)[0], boundsOf(year, 12)[1]] as const
    for (let month = 1; month <= 12; month++) {
      if (months !== null && !months.includes(month)) continue
      const ofMonth = boundsOf(year, month)
      const within = rule.months === null ? ofYear : ofMonth
      for (let day = Math.max(first, ofMonth[0]); day <= ofMonth[1]; day++) {
        if (!onWeekday[weekdayOfDay(day)] || !isOneOf(monthDays, day, ofMonth)) continue
        if (rule.weekdays !== null && !rule.weekdays.some((wanted) => isWeekday(wanted, day, within))) continue
        if (day > rule.until || left-- === 0) return
        yield day
      }
    }
  }
}

/** The first of January 1970 was a Thursday. */
const weekdayOfDay = (day: number): number => (day + 4) % 7

function boundsOf(year: number, month: number): readonly [first: number, last: number] {
  const next = month === 12 ? Date.UTC(year + 1, 0, 1) : Date.UTC(year, month, 1)
  return [dayOf(year, month, 1) ?? Number.POSITIVE_INFINITY, next / DAY_MS - 1]
}

const isOneOf = (days: readonly number[] | null, day: number, [first, last]: readonly [number, number]): boolean =>
  days === null || days.includes(day - first + 1) || days.includes(day - last - 1)

function isWeekday(
  { weekday, nth }: { weekday: number; nth: number | null },
  day: number,
  [first, last]: readonly [number, number],
): boolean {
  if (weekdayOfDay(day) !== weekday) return false
  if (nth === null) return true
  return nth > 0 ? Math.floor((day - first) / 7) + 1 === nth : Math.floor((last - day) / 7) + 1 === -nth
}
