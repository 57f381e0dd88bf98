import { complainAboutUnit, isAmount, readAmount } from './read-amount.ts'
import { readBound } from './read-bounds.ts'
import { readAt, readBareTime, readBetween, readFrom, readMinutesPast, readOnTheHour } from './read-clock-clauses.ts'
import { putEvery, readDates, readMonthDayClause, readPart, readWeekdayClause } from './read-day-clauses.ts'
import { isMonthDay, readMonths } from './read-days.ts'
import { readAdverb, readFrequency } from './read-frequency.ts'
import { readZone } from './read-zone.ts'
import { type ClauseReader, Reading } from './reading.ts'
import type { Today } from './today.ts'
import { PARTS_OF_DAY, UNITS } from './vocabulary.ts'
import type { Words } from './words.ts'

const EXPECTED = '"every", "at", "on", "in", a day or a time, such as "every weekday at 9am" or "in 10 minutes"'

export function readClauses(words: Words, today: Today): Reading {
  const reading = new Reading(words, today)
  while (!words.isDone) {
    skipJoints(reading)
    if (!READERS.some((read) => read(reading))) throw words.unexpected(EXPECTED)
  }
  return reading
}

/** Commas and `and` only join what says the rest by itself; a semicolon, or another `every`, begins anew. */
function skipJoints(reading: Reading): void {
  const { words } = reading
  if (words.accept(';')) reading.beginGroup()
  while (words.is(',', 'and')) words.take()
  const { frequency, weekdays, months, monthDays } = reading.clauses
  const repeats = (frequency ?? weekdays ?? months ?? monthDays) !== undefined
  if (repeats && words.is('every', 'each')) reading.beginGroup()
}

/** `every 15 minutes`, `daily`, `once a day`. */
const readEvery: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.accept('every', 'each')
  if (token !== undefined) {
    putEvery(reading, readFrequency(words, token))
    return true
  }
  const adverb = readAdverb(words)
  if (adverb !== undefined) reading.put('frequency', adverb)
  return adverb !== undefined
}

/** `once a day` and `once every day` are every day; else it says how often something happens in all. */
const readOnce: ClauseReader = (reading) => {
  const { words } = reading
  if (words.accept('once') === undefined) return false
  const token = words.is('a', 'an', 'per') && UNITS.has(words.word(1)) ? words.take() : undefined
  if (token !== undefined) putEvery(reading, readFrequency(words, token))
  else if (!words.is('every', 'each')) reading.bounds.isOnce = true
  return true
}

const readNow: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.accept('now', 'immediately') ?? words.acceptAll('right', 'now')
  if (token !== undefined) reading.put('now', { token })
  return token !== undefined
}

/** `in 10 minutes`, `in january`, `in the morning`, `in Europe/Berlin`. */
const readIn: ClauseReader = (reading) => {
  const { words } = reading
  const token = words.accept('in')
  if (token === undefined) return false
  const part = words.is('the') ? PARTS_OF_DAY.get(words.word(1)) : undefined
  if (part !== undefined) {
    words.take()
    words.take()
    reading.put('part', { token, part })
    return true
  }
  if (isAmount(words)) {
    reading.put('offset', readAmount(words))
    return true
  }
  complainAboutUnit(words)
  const months = readMonths(words)
  if (months !== undefined) reading.put('months', { ...months, isRecurring: false })
  else if (!readZone(words, reading.today)) {
    throw words.unexpected('an amount such as "10 minutes", a month, or a time zone')
  }
  return true
}

/** `10 minutes from now`. */
const readFromNow: ClauseReader = (reading) => {
  const { words } = reading
  if (!isAmount(words)) return false
  const amount = readAmount(words)
  if (words.acceptAll('from', 'now') === undefined) {
    throw words.unexpected(`"from now"; or say "in" or "every" before ${JSON.stringify(amount.token.raw)}`)
  }
  reading.put('offset', amount)
  return true
}

/** `on the 1st of every month`, `on mondays`; days may also stand without `on`. */
const readOn: ClauseReader = (reading) => {
  const { words } = reading
  const isSaid = words.accept('on') !== undefined
  if (words.is('the', 'a') && !isMonthDay(words) && !words.follows('the', 'day')) words.take()
  const isRead = [readDates, readMonthDayClause, readWeekdayClause].some((read) => read(reading))
  if (isSaid && !isRead) throw words.unexpected('a day such as "monday", "the 1st" or "24 december"')
  return isRead
}

/** Tried in this order at every place. */
const READERS: readonly ClauseReader[] = [
  readOnTheHour,
  readEvery,
  ({ words, bounds, today }) => readBound(words, bounds, today),
  readOnce,
  readNow,
  readAt,
  readBetween,
  readFrom,
  readIn,
  readMinutesPast,
  readFromNow,
  readOn,
  readBareTime,
  readPart,
  ({ words, today }) => readZone(words, today),
]
