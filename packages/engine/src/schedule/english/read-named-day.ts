import { DAY_MS } from '../duration.ts'
import { parseInstant } from '../instant.ts'
import { type Day, dateOf, dayIn, monthAfter, type Today, weekdayFrom, weekdayOf } from './today.ts'
import type { Token } from './tokens.ts'
import { MONTH_NAMES, MONTHS, PARTS_OF_DAY, type PartOfDay, WEEKDAY_NAMES, WEEKDAYS } from './vocabulary.ts'
import type { Words } from './words.ts'

/** A day that was named by a date or by its distance from today. */
export interface NamedDay {
  token: Token
  /** What it may mean, soonest first: the first that is not past is meant. */
  candidates: readonly Day[]
  /** A month and a date without a year: there is one every year. */
  yearly?: { month: number; date: number }
  /** The Monday of a week that was named as a whole. */
  weekOf?: Day
  part?: PartOfDay
  /** A time that was written together with the date; local unless it has its offset. */
  time?: { localMs: number } | { instant: number }
}

/** No date without a year is further away: 29 February may skip eight years. */
const YEARS_AHEAD = 9

/** The day that begins here, or nothing. A weekday alone is left to who knows whether one or all are meant. */
export function readNamedDay(words: Words, today: Today): NamedDay | undefined {
  return readRelative(words, today) ?? readWritten(words) ?? readSpokenDate(words, today)
}

function readRelative(words: Words, today: Today): NamedDay | undefined {
  const token = words.peek()
  if (token === undefined) return undefined
  const named = (day: Day, part?: PartOfDay): NamedDay => ({
    token,
    candidates: [day],
    ...(part === undefined ? {} : { part }),
  })
  if (words.accept('today')) return named(today.day, readPart(words))
  if (words.accept('tonight')) return named(today.day, 'night')
  if (words.accept('tomorrow')) return named(today.day + 1, readPart(words))
  const overmorrow = words.acceptAll('the', 'day', 'after', 'tomorrow') ?? words.acceptAll('day', 'after', 'tomorrow')
  if (overmorrow !== undefined) return named(today.day + 2, readPart(words))
  if (words.is('this') && PARTS_OF_DAY.has(words.word(1))) {
    words.take()
    return named(today.day, readPart(words))
  }
  return words.is('next', 'this', 'coming') ? readNext(words, today, token) : undefined
}

function readPart(words: Words): PartOfDay | undefined {
  const part = PARTS_OF_DAY.get(words.word())
  if (part !== undefined) words.take()
  return part
}

function readNext(words: Words, today: Today, token: Token): NamedDay | undefined {
  const which = words.word()
  const weekday = WEEKDAYS.get(words.word(1))
  if (weekday !== undefined && !weekday.isPlural && weekday.days.length === 1) {
    words.take()
    words.take()
    const first = weekdayFrom(today.day + (which === 'next' ? 1 : 0), weekday.days[0] as number)
    const part = readPart(words)
    return { token, candidates: [first], ...(part === undefined ? {} : { part }) }
  }
  if (which !== 'next') return undefined
  const monday = today.day - ((weekdayOf(today.day) + 6) % 7)
  if (words.acceptAll('next', 'week')) return { token, candidates: [monday + 7], weekOf: monday + 7 }
  const month = words.acceptAll('next', 'month') ? monthAfter(dateOf(today.day), 1) : undefined
  const year = words.acceptAll('next', 'year') ? { year: dateOf(today.day).year + 1, month: 1 } : undefined
  const first = month ?? year
  return first === undefined ? undefined : { token, candidates: [dayIn(first, 1) as Day] }
}

/** `2026-12-24`, with or without a time. */
function readWritten(words: Words): NamedDay | undefined {
  const token = words.peek()
  if (token?.kind === 'odd date') throw words.refuse(token, 'is no date that everybody reads alike', isoOf(token.word))
  if (token?.kind !== 'date') return undefined
  words.take()
  const [year = 0, month = 0, date = 0] = token.word.slice(0, 10).split('-').map(Number)
  const day = month >= 1 && month <= 12 ? dayIn({ year, month }, date) : undefined
  if (day === undefined) throw words.refuse(token, 'is a date that does not exist')
  const written = token.word.slice(11)
  if (written === '') return { token, candidates: [day] }
  const hasOffset = /z|[+-]\d\d:\d\d$/.test(written)
  const text = token.word.toUpperCase()
  const full = /T\d\d:\d\d(?!:)/.test(text) ? text.replace(/(T\d\d:\d\d)/, '$1:00') : text
  try {
    const instant = parseInstant(hasOffset ? full : `${full}Z`)
    return { token, candidates: [day], time: hasOffset ? { instant } : { localMs: instant - day * DAY_MS } }
  } catch {
    throw words.refuse(token, 'is a time that does not exist')
  }
}

/** What an odd date would be in the one form that is read, if only one reading is possible. */
function isoOf(word: string): string | undefined {
  const [first = 0, second = 0, third = 0] = word.split(/[/.-]/).map(Number)
  const [year, a, b] = first > 31 ? [first, second, third] : [third, first, second]
  if (year < 1970 || year > 9_999) return undefined
  const isDayFirst = word.includes('.') || a > 12
  const [month, date] = first > 31 ? [a, b] : isDayFirst ? [b, a] : b > 12 ? [a, b] : [0, 0]
  if (month < 1 || month > 12 || dayIn({ year, month }, date) === undefined) return undefined
  return `${year}-${String(month).padStart(2, '0')}-${String(date).padStart(2, '0')}`
}

/** `24 December 2026`, `December 24th`, with or without its weekday in front. */
function readSpokenDate(words: Words, today: Today): NamedDay | undefined {
  const start = words.position
  const weekday = WEEKDAYS.get(words.word())
  const weekdayToken = weekday?.days.length === 1 && !weekday.isPlural ? words.take() : undefined
  if (weekdayToken !== undefined) {
    words.accept(',')
    words.accept('the')
  }
  const token = words.peek()
  const date = readMonthAndDate(words)
  if (date === undefined || token === undefined) {
    words.returnTo(start)
    return undefined
  }
  const named = namedDate(words, today, { ...date, token, year: readYear(words) })
  if (weekdayToken === undefined || weekday === undefined) return named
  const candidates = named.candidates.filter((day) => weekdayOf(day) === weekday.days[0])
  if (candidates.length > 0) return { token: weekdayToken, candidates: candidates.slice(0, 1) }
  const right = WEEKDAY_NAMES[weekdayOf(named.candidates[0] as Day)]
  throw words.refuse(weekdayToken, `is not the weekday of that date, which is a ${right}`, right)
}

export interface SpokenDate {
  token: Token
  month: number
  date: number
  year: number | undefined
}

function readMonthAndDate(words: Words): { month: number; date: number } | undefined {
  const isNumber = (ahead: number) => ['number', 'ordinal'].includes(words.peek(ahead)?.kind ?? '')
  const monthFirst = MONTHS.get(words.word())
  if (monthFirst !== undefined && isNumber(1) && /^\d{1,2}(st|nd|rd|th)?$/.test(words.word(1))) {
    words.take()
    return { month: monthFirst, date: Number.parseInt(words.take().word, 10) }
  }
  const ahead = words.word(1) === 'of' ? 2 : 1
  const monthLast = MONTHS.get(words.word(ahead))
  if (monthLast === undefined || !isNumber(0)) return undefined
  const token = words.take()
  if (!/^\d{1,2}\D*$/.test(token.word)) throw words.refuse(token, 'is no day of a month')
  words.accept('of')
  words.take()
  return { month: monthLast, date: Number.parseInt(token.word, 10) }
}

export function readYear(words: Words): number | undefined {
  const ahead = words.word() === ',' ? 1 : 0
  const token = words.peek(ahead)
  if (token?.kind !== 'number' || !/^\d{4}$/.test(token.word)) return undefined
  words.accept(',')
  return Number(words.take().word)
}

/** The day of a date, this year's and those of the years to come if none was said. */
export function namedDate(words: Words, today: Today, { token, month, date, year }: SpokenDate): NamedDay {
  const name = MONTH_NAMES[month - 1]
  // 2024 has all days that any year has.
  if (dayIn({ year: 2024, month }, date) === undefined) {
    throw words.refuse(token, `begins a date that does not exist: ${name} has no day ${date}`)
  }
  if (year !== undefined) {
    const day = dayIn({ year, month }, date)
    if (day === undefined) throw words.refuse(token, `begins a date that does not exist: ${name} ${year} is shorter`)
    return { token, candidates: [day] }
  }
  const thisYear = dateOf(today.day).year
  const years = Array.from({ length: YEARS_AHEAD }, (_, ahead) => dayIn({ year: thisYear + ahead, month }, date))
  return { token, candidates: years.filter((day) => day !== undefined), yearly: { month, date } }
}
