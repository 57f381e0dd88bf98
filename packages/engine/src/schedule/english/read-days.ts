import { type Day, dateOf, dayIn, daysIn, monthAfter, type Today, weekdayOf, type YearMonth } from './today.ts'
import type { Token } from './tokens.ts'
import { MONTHS, ORDINALS, WEEKDAYS } from './vocabulary.ts'
import type { Words } from './words.ts'

export interface Weekdays {
  token: Token
  /** 0 is Sunday; each once, in the order of a week that begins on Monday. */
  days: readonly number[]
  /** A plural or a range: meant every week, whether or not that is said. */
  isRecurring: boolean
}

const JOINTS = [',', 'and', 'on']
const RANGE_WORDS = ['to', 'through', 'thru', '-', 'until', 'till']

/** `monday`, `mon, wed and fri`, `monday to friday`, `weekdays`; `between` joins its ends with `and`. */
export function readWeekdays(words: Words, rangeWords: readonly string[] = RANGE_WORDS): Weekdays | undefined {
  const token = words.peek()
  const first = WEEKDAYS.get(words.word())
  if (token === undefined || first === undefined) return undefined
  const days = new Set<number>()
  let isRecurring = false
  do {
    const from = WEEKDAYS.get(words.take().word) as { days: readonly number[]; isPlural: boolean }
    isRecurring ||= from.isPlural
    const to = rangeWords.includes(words.word()) ? WEEKDAYS.get(words.word(1)) : undefined
    if (to !== undefined && to.days.length === 1 && from.days.length === 1) {
      words.take()
      words.take()
      isRecurring = true
      for (let day = from.days[0] as number; ; day = (day + 1) % 7) {
        days.add(day)
        if (day === to.days[0]) break
      }
    } else for (const day of from.days) days.add(day)
  } while (words.joined(JOINTS, () => WEEKDAYS.has(words.word())))
  return { token, days: [...days].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7)), isRecurring }
}

/** `january`, `january and july`, `june to august`; 1 is January. */
export function readMonths(words: Words): { token: Token; list: number[] } | undefined {
  const token = words.peek()
  if (token === undefined || !MONTHS.has(token.word)) return undefined
  const list = new Set<number>()
  do {
    const from = MONTHS.get(words.take().word) as number
    const to = RANGE_WORDS.includes(words.word()) ? MONTHS.get(words.word(1)) : undefined
    list.add(from)
    if (to === undefined) continue
    words.take()
    words.take()
    for (let month = from; month !== to; month = (month % 12) + 1) list.add((month % 12) + 1)
  } while (words.joined(JOINTS, () => MONTHS.has(words.word()) && !/^\d/.test(words.word(1))))
  return { token, list: [...list].sort((a, b) => a - b) }
}

/** A day that every month has, or some have. */
export type MonthDay =
  | { kind: 'date'; date: number; token?: Token }
  | { kind: 'last' }
  | { kind: 'nth weekday'; nth: number; weekday: number }
  | { kind: 'last weekday'; weekday: number }
  | { kind: 'first workday' }
  | { kind: 'last workday' }

/** Whether `1st`, `first monday`, `last day` or the like begins here. */
export function isMonthDay(words: Words): boolean {
  return isOrdinal(words.peek()) || (words.is('the') && isOrdinal(words.peek(1)))
}

/** `1st and 15th`, `first and third monday`, `last day`, `last weekday`. A noun holds for all ordinals before it. */
export function readMonthDays(words: Words): { token: Token; days: MonthDay[] } {
  words.accept('the')
  const token = words.peek() as Token
  const days: MonthDay[] = []
  let open: Token[] = []
  do {
    words.accept('the')
    open.push(words.take())
    if (words.is('day') || WEEKDAYS.has(words.word())) {
      const noun = words.take()
      days.push(...open.map((ordinal) => monthDay(words, ordinal, noun)))
      open = []
    }
  } while (words.joined(JOINTS, () => isMonthDay(words)))
  days.push(...open.map((ordinal) => monthDay(words, ordinal, undefined)))
  return { token, days }
}

function isOrdinal(token: Token | undefined): boolean {
  return token !== undefined && (token.kind === 'ordinal' || token.word === 'last' || ORDINALS.has(token.word))
}

function monthDay(words: Words, ordinal: Token, noun: Token | undefined): MonthDay {
  const isLast = ordinal.word === 'last'
  const nth = ORDINALS.get(ordinal.word) ?? Number.parseInt(ordinal.word, 10)
  if (noun === undefined || noun.word === 'day') {
    if (isLast && noun === undefined) throw words.unexpected('"day", "weekday" or a weekday such as "friday"')
    if (!isLast && (nth < 1 || nth > 31)) throw words.refuse(ordinal, 'is no day of a month: they go from 1st to 31st')
    return isLast ? { kind: 'last' } : { kind: 'date', date: nth, token: ordinal }
  }
  const weekdays = WEEKDAYS.get(noun.word)?.days ?? []
  if (weekdays.length === 5) {
    if (isLast) return { kind: 'last workday' }
    if (nth === 1) return { kind: 'first workday' }
    throw words.refuse(ordinal, 'is not understood before "weekday": only the first and the last are')
  }
  if (weekdays.length !== 1) throw words.refuse(noun, 'is two days: say which', 'saturday')
  const weekday = weekdays[0] as number
  if (isLast) return { kind: 'last weekday', weekday }
  if (nth < 1 || nth > 5) throw words.refuse(ordinal, 'is too many: a month has at most five of each weekday')
  return { kind: 'nth weekday', nth, weekday }
}

/** That day in one month, if the month has it. */
export function monthDayIn(month: YearMonth, which: MonthDay): Day | undefined {
  const last = dayIn(month, daysIn(month)) as Day
  const first = last - daysIn(month) + 1
  switch (which.kind) {
    case 'date':
      return dayIn(month, which.date)
    case 'last':
      return last
    case 'first workday':
      return first + ([1, 0, 0, 0, 0, 0, 2][weekdayOf(first)] ?? 0)
    case 'last workday':
      return last - ([2, 0, 0, 0, 0, 0, 1][weekdayOf(last)] ?? 0)
    case 'last weekday':
      return last - ((weekdayOf(last) - which.weekday + 7) % 7)
    case 'nth weekday': {
      const day = first + ((which.weekday - weekdayOf(first) + 7) % 7) + (which.nth - 1) * 7
      return day <= last ? day : undefined
    }
  }
}

/** A month that has five of one weekday comes within a few months, 29 February within eight years. */
const MONTHS_AHEAD = 100

/** That day in the months to come, soonest first: of those that are named, or of all. */
export function comingMonthDays(today: Today, which: MonthDay, months: readonly number[] | undefined): Day[] {
  const from = dateOf(today.day)
  const coming = Array.from({ length: MONTHS_AHEAD }, (_, ahead) => monthAfter(from, ahead))
  const days = coming.filter(({ month }) => months?.includes(month) ?? true).map((month) => monthDayIn(month, which))
  return days.filter((day) => day !== undefined)
}
