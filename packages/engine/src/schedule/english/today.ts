import type { Instant } from '../../runtime/clock.ts'
import { DAY_MS } from '../duration.ts'
import type { LocalTime, Zone } from '../zone.ts'

/** A date, as the number of days since 1 January 1970. */
export type Day = number

/** The moment a text was said, on the wall of its zone. */
export interface Today {
  zone: Zone
  now: Instant
  localNow: LocalTime
  day: Day
}

export function todayOf(zone: Zone, now: Instant): Today {
  const localNow = zone.localOf(now)
  return { zone, now, localNow, day: Math.floor(localNow / DAY_MS) }
}

export function instantAt({ zone }: Today, day: Day, timeMs: number): Instant {
  return zone.instantOf(day * DAY_MS + timeMs)
}

/** 0 is Sunday. */
export function weekdayOf(day: Day): number {
  return (((day + 4) % 7) + 7) % 7
}

/** The first such day at or after a day. */
export function weekdayFrom(day: Day, weekday: number): Day {
  return day + ((weekday - weekdayOf(day) + 7) % 7)
}

export interface YearMonth {
  year: number
  /** 1 is January. */
  month: number
}

export function dateOf(day: Day): YearMonth & { date: number } {
  const at = new Date(day * DAY_MS)
  return { year: at.getUTCFullYear(), month: at.getUTCMonth() + 1, date: at.getUTCDate() }
}

/** Months before or beyond the year carry over. */
export function monthAfter({ year, month }: YearMonth, months: number): YearMonth {
  const total = year * 12 + (month - 1) + months
  return { year: Math.floor(total / 12), month: (total % 12) + 1 }
}

export function daysIn({ year, month }: YearMonth): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate()
}

/** Nothing, if the month has no such day. */
export function dayIn({ year, month }: YearMonth, date: number): Day | undefined {
  if (date < 1 || date > daysIn({ year, month })) return undefined
  return Math.round(Date.UTC(year, month - 1, date) / DAY_MS)
}

/** Keeps the time of day; a day that the month lacks becomes its last. */
export function addToLocal(local: LocalTime, { months, days }: { months: number; days: number }): LocalTime {
  const day = Math.floor(local / DAY_MS)
  const timeMs = local - day * DAY_MS
  if (months === 0) return local + days * DAY_MS
  const { date, ...from } = dateOf(day)
  const month = monthAfter(from, months)
  return ((dayIn(month, Math.min(date, daysIn(month))) ?? day) + days) * DAY_MS + timeMs
}
