import type { Instant } from '../runtime/clock.ts'
import { dayOf, daysInMonth } from './calendar-day.ts'
import { DAY_MS } from './duration.ts'
import { notUnderstood, shown } from './not-understood.ts'

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(\.\d{1,12})?)?([Zz]|[+-]\d\d:\d\d)?$/
const DATE_ONLY = /^\d{4}-\d\d-\d\d$/

/**
 * Reads a Date or an RFC 3339 text. What is finer than a millisecond is cut off. A number is refused: nobody can tell
 * seconds from milliseconds.
 */
export function parseInstant(value: unknown): Instant {
  if (value instanceof Date) {
    const instant = value.getTime()
    if (Number.isNaN(instant)) throw notUnderstood('is an invalid Date')
    return instant
  }
  if (typeof value === 'number') {
    const text = Number.isFinite(value) && Math.abs(value) < 8e15 ? formatInstant(value) : undefined
    throw notUnderstood(`must be a Date or a text such as "2026-01-31T09:00:00Z", not the number ${value}`, text)
  }
  if (typeof value !== 'string') {
    throw notUnderstood(`must be a Date or a text such as "2026-01-31T09:00:00Z", not ${shown(value)}`)
  }
  return parseText(value)
}

function formatInstant(instant: Instant): string {
  return new Date(instant).toISOString()
}

function parseText(text: string): Instant {
  const match = RFC_3339.exec(text)
  if (match === null) {
    const suggestion = DATE_ONLY.test(text) ? `${text}T00:00:00Z` : undefined
    throw notUnderstood(`${shown(text)} is not a time such as "2026-01-31T09:00:00Z"`, suggestion)
  }
  const [, year, month, day, hour, minute, second, fraction = '', offset] = match
  if (offset === undefined) throw notUnderstood(`${shown(text)} lacks its offset from UTC`, `${withSeconds(match)}Z`)
  if (second === undefined) throw notUnderstood(`${shown(text)} lacks its seconds`, `${withSeconds(match)}${offset}`)
  const [y, m, d] = [Number(year), Number(month), Number(day)]
  const isDay = m >= 1 && m <= 12 && d >= 1 && d <= daysInMonth(y, m)
  if (!isDay || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) {
    throw notUnderstood(`${shown(text)} is a time that does not exist`)
  }
  const ms = Number(fraction.slice(1, 4).padEnd(3, '0'))
  return (
    dayOf(y, m, d) * DAY_MS +
    (Number(hour) * 3_600 + Number(minute) * 60 + Number(second)) * 1_000 +
    ms -
    offsetMs(offset, text)
  )
}

function withSeconds([, year, month, day, hour, minute, second = '00', fraction = '']: RegExpExecArray): string {
  return `${year}-${month}-${day}T${hour}:${minute}:${second}${fraction}`
}

function offsetMs(offset: string, text: string): number {
  if (offset === 'Z' || offset === 'z') return 0
  const hours = Number(offset.slice(1, 3))
  const minutes = Number(offset.slice(4, 6))
  if (hours > 23 || minutes > 59) throw notUnderstood(`${shown(text)} has an offset that does not exist`)
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes) * 60_000
}
