import { notUnderstood, shown } from './not-understood.ts'

/** A day of the calendar, counted from 1970-01-01, which is 0. Gregorian for all years, as everywhere in computing. */
export type CalendarDay = number

export interface DateParts {
  year: number
  /** From 1. */
  month: number
  day: number
}

const DAYS_IN_400_YEARS = 146_097
/** From 0000-03-01, where the years of this arithmetic begin, to 1970-01-01. */
const DAYS_BEFORE_1970 = 719_468

/** Years begin in March here, so that a leap day comes last in its year. */
export function dayOf(year: number, month: number, day: number): CalendarDay {
  const fromMarch = month > 2 ? year : year - 1
  const era = Math.floor(fromMarch / 400)
  const yearOfEra = fromMarch - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * DAYS_IN_400_YEARS + dayOfEra - DAYS_BEFORE_1970
}

export function dateOf(calendarDay: CalendarDay): DateParts {
  const shifted = calendarDay + DAYS_BEFORE_1970
  const era = Math.floor(shifted / DAYS_IN_400_YEARS)
  const dayOfEra = shifted - era * DAYS_IN_400_YEARS
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const fromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * fromMarch + 2) / 5) + 1,
  }
}

/** 0 is Sunday. */
export function weekdayOf(day: CalendarDay): number {
  return (((day + 4) % 7) + 7) % 7
}

const LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

export function daysInMonth(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month === 2 && isLeap ? 29 : (LENGTHS[month - 1] as number)
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/

export function parseDay(text: unknown): CalendarDay {
  const match = typeof text === 'string' ? DATE.exec(text) : null
  if (match === null) throw notUnderstood(`must be a date such as "2026-12-25", not ${shown(text)}`)
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const exists = year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month)
  if (!exists) throw notUnderstood(`${shown(text)} is a day that does not exist`)
  return dayOf(year, month, day)
}

export function formatDay(calendarDay: CalendarDay): string {
  const { year, month, day } = dateOf(calendarDay)
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
}
