import type { Clauses, Frequency } from './clauses.ts'
import { valuesOf } from './cron-field-values.ts'
import { listed, monthName } from './english-list.ts'
import type { MonthDay } from './read-days.ts'
import type { Start } from './resolve-bounds.ts'
import { dateOf, daysIn, weekdayOf } from './today.ts'
import type { Words } from './words.ts'

/** The last three fields of an expression. */
export interface CronDays {
  date: string
  month: string
  weekday: string
}

export const ANY_DAY: CronDays = { date: '*', month: '*', weekday: '*' }
const MONTHS_OF_YEAR = 12
/** It has all days that any year has. */
const LEAP_YEAR = 2024

/** The days that were named, or those that the frequency implies: of a week Monday, of a month the 1st, of a year 1 January. */
export function cronDays(words: Words, clauses: Clauses, frequency: Frequency, start: Start | undefined): CronDays[] {
  const { dates, weekdays, monthDays } = clauses
  if (weekdays !== undefined && (monthDays ?? dates) !== undefined) {
    throw words.refuse(weekdays.token, 'cannot narrow days of a month: a cron expression would fire on either')
  }
  if (dates !== undefined) return datedDays(words, clauses)
  const month = monthField(words, clauses, frequency, start)
  if (monthDays !== undefined) {
    if (frequency.unit === 'week') throw words.refuse(monthDays.token, 'is no day of a week')
    complainAboutMissingDays(words, monthDays.days, month)
    return [{ ...monthDayFields(monthDays.days), month }]
  }
  if (weekdays !== undefined) {
    complainAboutPeriod(words, clauses, frequency)
    return [{ date: '*', month, weekday: weekdayField(weekdays.days) }]
  }
  return [{ ...impliedDay(frequency, start), month }]
}

/** `every february on the 30th`. */
function complainAboutMissingDays(words: Words, days: readonly MonthDay[], month: string): void {
  const months = valuesOf(month, { min: 1, max: MONTHS_OF_YEAR }) ?? []
  for (const day of days) {
    if (day.kind !== 'date' || day.token === undefined) continue
    const { date, token } = day
    if (months.some((value) => date <= daysIn({ year: LEAP_YEAR, month: value }))) continue
    const names = listed(months.map(monthName))
    throw words.refuse(
      token,
      `is a day that does not exist: ${names} ${months.length > 1 ? 'have' : 'has'} no ${token.raw}`,
    )
  }
}

function impliedDay({ unit }: Frequency, start: Start | undefined): { date: string; weekday: string } {
  if (unit === 'week') return { date: '*', weekday: String(start?.day === undefined ? 1 : weekdayOf(start.day)) }
  if (unit === 'month' || unit === 'quarter' || unit === 'year') {
    return { date: String(start?.day === undefined ? 1 : dateOf(start.day).date), weekday: '*' }
  }
  return { date: '*', weekday: '*' }
}

/** `every month on monday`: the first, or each? */
function complainAboutPeriod(words: Words, { weekdays, months }: Clauses, { unit, token }: Frequency): void {
  const isLong = unit === 'month' || unit === 'quarter' || (unit === 'year' && months === undefined)
  if (!isLong || weekdays === undefined || token === weekdays.token) return
  throw words.refuse(weekdays.token, `comes several times in a ${unit}: say which, as in "first monday of every month"`)
}

/** `24 december`, every year. */
function datedDays(words: Words, { dates, months }: Clauses): CronDays[] {
  if (months !== undefined) throw words.refuse(months.token, 'names a month beside a date that has one')
  return (dates?.days ?? []).map(({ yearly, token }) => {
    if (yearly === undefined) throw words.refuse(token, 'is one day, and "every" means many: say "starting" before it')
    return { date: String(yearly.date), month: String(yearly.month), weekday: '*' }
  })
}

function monthField(words: Words, clauses: Clauses, frequency: Frequency, start: Start | undefined): string {
  const { months, monthDays } = clauses
  const { unit, count } = frequency
  const step = unit === 'month' ? count : unit === 'quarter' ? count * 3 : unit === 'year' ? MONTHS_OF_YEAR : 1
  if (months !== undefined) {
    if (step > 1 && unit !== 'year')
      throw words.refuse(months.token, 'names months beside a frequency that counts them')
    return months.list.length === MONTHS_OF_YEAR ? '*' : (rowOf(months.list) ?? months.list.join(','))
  }
  if (step === 1) return '*'
  const isEnd = monthDays?.days.every(({ kind }) => kind.startsWith('last')) ?? false
  const fromEnd = isEnd && unit !== 'month' ? step : 1
  const first = start?.day === undefined ? fromEnd : dateOf(start.day).month
  if (first === 1 && step < MONTHS_OF_YEAR) return `*/${step}`
  const list = Array.from({ length: MONTHS_OF_YEAR / step }, (_, index) => ((first - 1 + index * step) % 12) + 1)
  return list.sort((a, b) => a - b).join(',')
}

function monthDayFields(days: readonly MonthDay[]): { date: string; weekday: string } {
  const dates: string[] = []
  const weekdays: string[] = []
  for (const day of days) {
    if (day.kind === 'date') dates.push(String(day.date))
    else if (day.kind === 'last') dates.push('L')
    else if (day.kind === 'first workday') dates.push('1W')
    else if (day.kind === 'last workday') dates.push('LW')
    else weekdays.push(day.kind === 'last weekday' ? `${day.weekday}L` : `${day.weekday}#${day.nth}`)
  }
  // Where both are given a cron expression fires on either, which is what "and" between days means.
  return { date: dates.join(',') || '*', weekday: weekdays.join(',') || '*' }
}

/** Days in a row are a range, which may end on Sunday. */
function weekdayField(days: readonly number[]): string {
  if (days.length === 7) return '*'
  return rowOf(days.map((day) => (day === 0 ? 7 : day))) ?? [...days].sort((a, b) => a - b).join(',')
}

/** `6-8` for three and more in a row. */
function rowOf(values: readonly number[]): string | undefined {
  const sorted = [...values].sort((a, b) => a - b)
  const [first = 0] = sorted
  const isRow = sorted.length > 2 && sorted.every((value, index) => value === first + index)
  return isRow ? `${first}-${sorted.at(-1)}` : undefined
}
