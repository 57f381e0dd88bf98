import { DAY_MS, MAX_DURATION_MS } from '../duration.ts'
import type { Token } from './tokens.ts'
import { NUMBERS, UNITS, type Unit } from './vocabulary.ts'
import type { Words } from './words.ts'

/** A length of time as somebody says it: months and days are counted on the calendar, the rest is elapsed time. */
export interface Amount {
  months: number
  days: number
  ms: number
  token: Token
}

export const CLOCK_MS: Partial<Record<Unit, number>> = { second: 1_000, minute: 60_000, hour: 3_600_000 }
export const DAYS: Partial<Record<Unit, number>> = { day: 1, week: 7 }
export const MONTHS_OF: Partial<Record<Unit, number>> = { month: 1, quarter: 3, year: 12 }
const MAX_MONTHS = 1_200

/** Whether an amount such as `10 minutes` or `half an hour` begins here. */
export function isAmount(words: Words): boolean {
  if (words.is('half')) return UNITS.has(words.word(['a', 'an'].includes(words.word(1)) ? 2 : 1))
  return (words.peek()?.kind === 'number' || NUMBERS.has(words.word())) && UNITS.has(words.word(1))
}

/** A number that no unit follows: the word after it is what is wrong. */
export function complainAboutUnit(words: Words): void {
  if (words.peek()?.kind !== 'number' && !NUMBERS.has(words.word())) return
  words.take()
  throw words.unexpected('a unit such as "minutes", "hours" or "days"')
}

/** `2 hours and 30 minutes`, `1h30m`, `an hour and a half`, `half an hour`. */
export function readAmount(words: Words): Amount {
  const token = words.peek()
  if (token === undefined || !isAmount(words)) throw words.unexpected('an amount such as "10 minutes" or "2 days"')
  const total: Amount = { months: 0, days: 0, ms: 0, token }
  do addPart(words, total)
  while (acceptAnother(words))
  if (total.ms + total.days * DAY_MS > MAX_DURATION_MS || total.months > MAX_MONTHS) {
    throw words.refuse(token, 'begins an amount of more than 100 years')
  }
  return total
}

function acceptAnother(words: Words): boolean {
  const position = words.position
  words.accept(',')
  words.accept('and')
  if (isAmount(words)) return true
  words.returnTo(position)
  return false
}

function addPart(words: Words, total: Amount): void {
  const token = words.peek() as Token
  const count = readCount(words)
  const unit = UNITS.get(words.take().word) as { unit: Unit; times: number }
  if (unit.unit === 'quarter' && words.acceptAll('of', 'an', 'hour')) {
    total.ms += count * 15 * 60_000
    return
  }
  const half = CLOCK_MS[unit.unit] !== undefined && words.acceptAll('and', 'a', 'half') ? 0.5 : 0
  add(words, token, total, { unit: unit.unit, count: (count + half) * unit.times })
}

export function readCount(words: Words): number {
  if (words.accept('half')) {
    words.accept('a', 'an')
    return 0.5
  }
  const token = words.take()
  return NUMBERS.get(token.word) ?? Number(token.word)
}

function add(words: Words, token: Token, total: Amount, { unit, count }: { unit: Unit; count: number }): void {
  const clockMs = CLOCK_MS[unit]
  if (clockMs !== undefined) {
    total.ms += Math.round(count * clockMs)
    return
  }
  if (!Number.isInteger(count)) throw words.refuse(token, `is not understood: ${unit}s are counted whole`)
  total.days += count * (DAYS[unit] ?? 0)
  total.months += count * (MONTHS_OF[unit] ?? 0)
}
