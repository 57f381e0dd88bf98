import { Complaints, isRecord, readRecord, readText } from '../input/read-fields.ts'
import type { Calendar } from '../job/definition.ts'
import { nearestName } from '../job/nearest-name.ts'
import type { Instant } from '../runtime/clock.ts'
import { shown } from '../schedule/not-understood.ts'
import { type CalendarDay, dateProblem } from './calendar-day.ts'
import { readICalendar } from './read-icalendar.ts'

export const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
export type Weekday = (typeof WEEKDAYS)[number]

/** At least one of them. Days and those of the iCalendar text are taken together. */
export interface CalendarInput {
  days?: readonly (string | CalendarDay)[]
  /** Weekdays that never are business days; none unless given. */
  weekend?: readonly Weekday[]
  icalendar?: string
}

/** In order, without doubles. */
export interface UnderstoodCalendar {
  days: CalendarDay[]
  weekend: number[]
}

const FIELDS = ['days', 'weekend', 'icalendar']
const MAX_DAYS = 5_000
const MAX_ICALENDAR_BYTES = 1_048_576
const MAX_NAME = 200

/** What a schedule needs of it. */
export const calendarOf = ({ days, weekend }: UnderstoodCalendar): Calendar => ({
  days: days.map(({ date }) => date),
  weekend,
})

export function understandCalendar(input: CalendarInput, now: Instant): UnderstoodCalendar {
  const complaints = new Complaints()
  const record = readRecord(complaints, 'calendar', input, FIELDS)
  if (record && FIELDS.every((field) => record[field] === undefined))
    complaints.add('days', 'is needed: or weekend, or icalendar')
  const days = record?.days === undefined ? [] : readDays(complaints, record.days)
  const weekend = record?.weekend === undefined ? [] : readWeekend(complaints, record.weekend)
  const read = record?.icalendar === undefined ? [] : readCalendarText(complaints, record.icalendar, now)
  const all = inOrder([...days, ...read])
  if (all.length > MAX_DAYS)
    complaints.add(
      read.length > days.length ? 'icalendar' : 'days',
      `a calendar has at most ${MAX_DAYS} days, not ${all.length}`,
    )
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return { days: all, weekend }
}

function readDays(complaints: Complaints, value: unknown): CalendarDay[] {
  if (!Array.isArray(value)) {
    complaints.add('days', `must be a list of dates such as "2026-12-25", not ${shown(value)}`)
    return []
  }
  if (value.length > 2 * MAX_DAYS) {
    complaints.add('days', `must have at most ${MAX_DAYS} days, not ${value.length}`)
    return []
  }
  return value.flatMap((day, i) => readDay(complaints, `days[${i}]`, day) ?? [])
}

function readDay(complaints: Complaints, path: string, value: unknown): CalendarDay | undefined {
  if (!isRecord(value)) return readDate(complaints, path, value)
  const record = readRecord(complaints, path, value, ['date', 'name']) as Record<string, unknown>
  const day = readDate(complaints, `${path}.date`, record.date)
  if (record.name === undefined) return day
  const name = readText(complaints, `${path}.name`, record.name, MAX_NAME)
  return day && name !== undefined ? { ...day, name: name.trim() } : undefined
}

function readDate(complaints: Complaints, path: string, value: unknown): CalendarDay | undefined {
  const problem = dateProblem(value)
  return problem === null ? { date: value as string } : complaints.add(path, problem)
}

function readWeekend(complaints: Complaints, value: unknown): number[] {
  if (!Array.isArray(value) || value.length > WEEKDAYS.length) {
    complaints.add('weekend', `must be a list of weekdays such as ["sat", "sun"], not ${shown(value)}`)
    return []
  }
  const found = new Set<number>()
  value.forEach((day, i) => {
    const at = WEEKDAYS.indexOf(day as Weekday)
    if (at >= 0) found.add(at)
    else {
      const suggestion = typeof day === 'string' ? nearestName(day.toLowerCase().slice(0, 3), WEEKDAYS) : undefined
      complaints.add(`weekend[${i}]`, `must be one of ${WEEKDAYS.join(', ')}, not ${shown(day)}`, suggestion)
    }
  })
  if (found.size === WEEKDAYS.length) complaints.add('weekend', 'must leave at least one day of the week to work on')
  return [...found].sort((a, b) => a - b)
}

function readCalendarText(complaints: Complaints, value: unknown, now: Instant): CalendarDay[] {
  if (typeof value !== 'string') {
    complaints.add('icalendar', `must be a text that begins with BEGIN:VCALENDAR, not ${shown(value)}`)
    return []
  }
  const bytes = Buffer.byteLength(value)
  if (bytes > MAX_ICALENDAR_BYTES) {
    complaints.add('icalendar', `must have at most ${MAX_ICALENDAR_BYTES} bytes, not ${bytes}`)
    return []
  }
  const { days, problem } = readICalendar(value, { now, maxDays: MAX_DAYS, maxName: MAX_NAME })
  if (problem !== null) complaints.add('icalendar', problem)
  return days
}

/** Of a date that comes twice, the first name that there is. */
function inOrder(days: readonly CalendarDay[]): CalendarDay[] {
  const byDate = new Map<string, CalendarDay>()
  for (const day of days) if (byDate.get(day.date)?.name === undefined) byDate.set(day.date, day)
  return [...byDate.values()].sort((a, b) => (a.date < b.date ? -1 : 1))
}
