import { DAY_MS } from '../schedule/duration.ts'
import { shown } from '../schedule/not-understood.ts'

/** A day on which nobody works, and what it is called. */
export interface CalendarDay {
  date: string
  name?: string
}

/** Days are plain dates, without a zone: a schedule reads them in its own. Here they are counted as days since 1970. */
const FIRST_YEAR = 1970
const LAST_YEAR = 2200

export const dateOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

/** Null: there is no such day. */
export function dayOf(year: number, month: number, day: number): number | null {
  const at = Date.UTC(year, month - 1, day)
  const date = new Date(at)
  const isReal = date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return isReal && year >= FIRST_YEAR && year <= LAST_YEAR ? at / DAY_MS : null
}

/** What is wrong with a date such as `2026-12-25`; null: nothing. */
export function dateProblem(value: unknown): string | null {
  const match = typeof value === 'string' ? /^(\d{4})-(\d\d)-(\d\d)$/.exec(value) : null
  if (match === null) return `must be a date such as "2026-12-25", not ${shown(value)}`
  const [, year, month, day] = match
  if (dayOf(Number(year), Number(month), Number(day)) !== null) return null
  return `there is no day ${value} between ${FIRST_YEAR} and ${LAST_YEAR}`
}
