import { HOUR_MS, MINUTE_MS } from '../duration.ts'
import type { Clauses, Frequency } from './clauses.ts'
import { CLOCK_MS, complainAboutUnit, isAmount, MONTHS_OF, readAmount, readCount } from './read-amount.ts'
import { isMonthDay, readMonths, readWeekdays } from './read-days.ts'
import type { Token } from './tokens.ts'
import { ADVERBS, MONTHS, ORDINALS, PARTS_OF_DAY, UNITS, type Unit, WEEKDAYS } from './vocabulary.ts'
import type { Words } from './words.ts'

const EXPECTED = 'a unit such as "15 minutes" or "day", or a weekday or month'
/** A century. */
const MAX_DAYS = 36_525
const MAX_MONTHS = 1_200

/** What may follow `every`. Days and dates after it are left to the reader of days, which is told that they recur. */
export function readFrequency(words: Words, every: Token): Partial<Clauses> {
  const part = PARTS_OF_DAY.get(words.word())
  if (part !== undefined) {
    const token = words.take()
    return { frequency: { token: every, count: 1, unit: 'day' }, part: { token, part } }
  }
  if (words.is('other')) return readOther(words, every)
  if (words.is('half', 'quarter') && isFraction(words)) return { frequency: readFraction(words, every) }
  if (isAmount(words)) return { frequency: readCounted(words, every) }
  if (isOrdinalUnit(words)) return { frequency: readOrdinalUnit(words, every) }
  const unit = UNITS.get(words.word())
  const isOrdinalDay = ORDINALS.has(words.word()) && (WEEKDAYS.has(words.word(1)) || words.word(2) === 'of')
  if (unit !== undefined && words.word().length > 1 && !isOrdinalDay) {
    words.take()
    return { frequency: { token: every, count: unit.times, unit: unit.unit } }
  }
  return readEveryDay(words, every)
}

/** `daily`, `hourly` … */
export function readAdverb(words: Words): Frequency | undefined {
  const adverb = ADVERBS.get(words.word())
  return adverb === undefined ? undefined : { token: words.take(), count: adverb.times, unit: adverb.unit }
}

function readOther(words: Words, every: Token): Partial<Clauses> {
  words.take()
  const weekdays = readWeekdays(words)
  if (weekdays !== undefined) return { frequency: { token: every, count: 2, unit: 'week' }, weekdays }
  const unit = UNITS.get(words.word())
  if (unit === undefined || words.word().length === 1) throw words.unexpected('a unit such as "day", or a weekday')
  words.take()
  return { frequency: { token: every, count: 2 * unit.times, unit: unit.unit } }
}

function isFraction(words: Words): boolean {
  const next = words.word(1)
  return next === 'hour' || (next === 'an' && words.word(2) === 'hour') || (next === 'of' && words.word(3) === 'hour')
}

function readFraction(words: Words, token: Token): Frequency {
  const count = words.take().word === 'half' ? 30 : 15
  while (!words.is('hour')) words.take()
  words.take()
  return { token, count, unit: 'minute' }
}

function readCounted(words: Words, token: Token): Frequency {
  const first = words.peek() as Token
  const unit = (UNITS.get(words.word(1)) ?? UNITS.get(words.word(2))) as { unit: Unit; times: number }
  const isWhole = CLOCK_MS[unit.unit] === undefined && !words.is('half')
  const count = isWhole ? readCount(words) * unit.times : 0
  if (isWhole) words.take()
  const frequency = isWhole ? { token, count, unit: unit.unit } : { token, ...readClock(words, first) }
  if (frequency.count === 0) throw words.refuse(first, 'is not possible: nothing can fire every 0 of a unit')
  const most = MONTHS_OF[unit.unit] === undefined ? MAX_DAYS : MAX_MONTHS / (MONTHS_OF[unit.unit] ?? 1)
  if (!Number.isInteger(frequency.count) || (isWhole && frequency.count > most)) {
    throw words.refuse(first, `is not possible here: a whole number of ${unit.unit}s up to a century is`)
  }
  return frequency
}

/** `90 minutes`, `1h30m`, `2 hours and 30 minutes`, in the largest unit that holds it whole. */
function readClock(words: Words, first: Token): { count: number; unit: Unit } {
  const { months, days, ms } = readAmount(words)
  if (months > 0 || days > 0) throw words.refuse(first, 'begins days and hours together: they cannot repeat as one')
  if (ms % HOUR_MS === 0) return { count: ms / HOUR_MS, unit: 'hour' }
  return ms % MINUTE_MS === 0 ? { count: ms / MINUTE_MS, unit: 'minute' } : { count: ms / 1_000, unit: 'second' }
}

/** `second day`, `third hour`: the ordinal counts, unless `of` makes it a day of something. */
function isOrdinalUnit(words: Words): boolean {
  const isOrdinal = ORDINALS.has(words.word()) || words.peek()?.kind === 'ordinal'
  return isOrdinal && UNITS.has(words.word(1)) && words.word(1).length > 1 && words.word(2) !== 'of'
}

function readOrdinalUnit(words: Words, token: Token): Frequency {
  const ordinal = words.take()
  const unit = UNITS.get(words.take().word) as { unit: Unit; times: number }
  const count = ORDINALS.get(ordinal.word) ?? Number.parseInt(ordinal.word, 10)
  if (count < 1) throw words.refuse(ordinal, 'is not possible: the first is 1st')
  return { token, count: count * unit.times, unit: unit.unit }
}

/** `monday and thursday`, `january`, `december 24`, `1st and 15th`, `first monday of the month`. */
function readEveryDay(words: Words, every: Token): Partial<Clauses> {
  const weekdays = readWeekdays(words)
  if (weekdays !== undefined) return { weekdays: { ...weekdays, isRecurring: true } }
  const isDate = /^\d/.test(words.word()) || /^\d/.test(words.word(1))
  if (MONTHS.has(words.word()) && !isDate) {
    const months = readMonths(words)
    if (months !== undefined) return { months: { ...months, isRecurring: true } }
  }
  if (isMonthDay(words)) return readEveryOrdinal(words, every)
  if (MONTHS.has(words.word()) || (words.peek()?.kind === 'number' && MONTHS.has(words.word(1)))) {
    return { frequency: { token: every, count: 1, unit: 'year' } }
  }
  complainAboutUnit(words)
  throw words.unexpected(EXPECTED)
}

function readEveryOrdinal(words: Words, every: Token): Partial<Clauses> {
  const ahead = words.is('the') ? 1 : 0
  const weekday = WEEKDAYS.get(words.word(ahead + 1))
  if (weekday !== undefined && words.word(ahead + 2) !== 'of') {
    const said = `${words.peek(ahead)?.raw} ${words.peek(ahead + 1)?.raw}`
    const weekly = words.word(ahead) === 'last' ? '' : `, or "every other ${words.peek(ahead + 1)?.raw}"`
    throw words.refuse(words.peek(ahead) as Token, `may count weeks or months: say "${said} of every month"${weekly}`)
  }
  return { scope: { token: every, kind: 'every' } }
}
