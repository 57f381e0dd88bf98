import type { Clauses } from './clauses.ts'
import { isMonthDay, readMonthDays, readMonths, readWeekdays } from './read-days.ts'
import { readFrequency } from './read-frequency.ts'
import { type NamedDay, namedDate, readNamedDay, readYear } from './read-named-day.ts'
import type { ClauseReader, Reading } from './reading.ts'
import type { Token } from './tokens.ts'
import { MONTHS, PARTS_OF_DAY, UNITS } from './vocabulary.ts'

/** `tomorrow`, `2026-12-24`, `1 january and 1 july`. */
export const readDates: ClauseReader = (reading) => {
  const { words, today } = reading
  if (isMonthDay(words)) return false
  const day = readNamedDay(words, today)
  if (day !== undefined) putDates(reading, day)
  return day !== undefined
}

function putDates(reading: Reading, first: NamedDay): void {
  const { words, today } = reading
  const days: NamedDay[] = []
  const next = () => words.joined([',', 'and'], () => readNamedDay(words, today))
  for (let day: NamedDay | undefined = first; day !== undefined; day = next()) days.push(day)
  reading.put('dates', { token: first.token, days })
}

/** `monday and thursday`, `weekdays`, `friday evening`. */
export const readWeekdayClause: ClauseReader = (reading) => {
  const { words } = reading
  if (words.is('everyday')) {
    reading.put('frequency', { token: words.take(), count: 1, unit: 'day' })
    return true
  }
  const weekdays = readWeekdays(words)
  if (weekdays === undefined) return false
  reading.put('weekdays', weekdays)
  readPart(reading)
  return true
}

export const readPart: ClauseReader = (reading) => {
  const part = PARTS_OF_DAY.get(reading.words.word())
  if (part !== undefined) reading.put('part', { token: reading.words.take(), part })
  return part !== undefined
}

/** What follows `every`; the days of a month that it announces come next. */
export function putEvery(reading: Reading, clauses: Partial<Clauses>): void {
  reading.putAll(clauses)
  if (clauses.scope !== undefined) readMonthDayClause(reading)
}

/** `first monday of the month`, `1st and 15th of january`, `last day of next month`. */
export const readMonthDayClause: ClauseReader = (reading) => {
  const { words } = reading
  if (!isMonthDay(words)) return false
  const { token, days } = readMonthDays(words)
  const isNear = (words.is('next', 'this') && words.word(1) === 'month') || MONTHS.has(words.word())
  const isOf = words.accept('of') !== undefined || isNear
  const every = isOf ? words.accept('every', 'each') : undefined
  const months = isOf ? readMonths(words) : undefined
  const [only] = days
  if (only?.kind === 'date' && days.length === 1 && months?.list.length === 1 && every === undefined) {
    const month = months.list[0] as number
    putDates(reading, namedDate(words, reading.today, { token, month, date: only.date, year: readYear(words) }))
    return true
  }
  reading.put('monthDays', { token, days })
  if (months !== undefined) reading.put('months', { ...months, isRecurring: every !== undefined })
  else if (every !== undefined) putPeriod(reading, every)
  else if (isOf) putScope(reading)
  return true
}

/** `of every month`, `of every 3 months`. */
function putPeriod(reading: Reading, every: Token): void {
  const { frequency, ...other } = readFrequency(reading.words, every)
  const isLong = frequency?.unit === 'month' || frequency?.unit === 'quarter' || frequency?.unit === 'year'
  if (!isLong || Object.keys(other).length > 0) {
    throw reading.words.refuse(every, 'needs months, quarters or years after the days of a month')
  }
  reading.put('frequency', frequency)
}

/** `of the month`, `of next month`. */
function putScope(reading: Reading): void {
  const { words } = reading
  const token = words.accept('the', 'next', 'this')
  const unit = UNITS.get(words.word())?.unit
  if (unit !== 'month' && unit !== 'quarter' && unit !== 'year') {
    throw words.unexpected('"the month", "every month", "next month" or a month')
  }
  const noun = words.take()
  const kind = token?.word === 'next' || token?.word === 'this' ? token.word : 'every'
  if (kind !== 'every' && unit !== 'month') throw words.refuse(noun, 'is not understood here: name the month')
  // "every first monday of the month" says it twice.
  if (kind !== 'every' || reading.clauses.scope?.kind !== 'every') reading.put('scope', { token: token ?? noun, kind })
  if (unit !== 'month') reading.put('frequency', { token: noun, count: 1, unit })
}
