import { isStorable } from '../input/read-fields.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { type CalendarDay, dateOfDay } from './calendar-day.ts'
import { type ContentLine, contentLines, cut, ICalendarProblem } from './icalendar-lines.ts'
import { readICalendarDuration, readICalendarTime } from './icalendar-time.ts'
import { daysOfRule, readYearlyRule, type YearlyRule } from './yearly-rule.ts'

/** A rule without an end is followed for so long. */
const YEARS_AHEAD = 20
/** One event may last so long; longer ones are no holidays. */
const MAX_DAYS_OF_EVENT = 366
const MAX_EVENTS = 5_000
/** Each may be a day's walk through a century. */
const MAX_RULES = 200

export interface ICalendarBounds {
  now: Instant
  maxDays: number
  maxName: number
}

interface Event {
  line: number
  start?: { at: number; isDate: boolean }
  endAt?: number
  durationMs?: number
  rule?: YearlyRule
  alsoOn: number[]
  notOn: Set<number>
  name?: string
  isCanceled: boolean
}

/** The days of a calendar file's events. The first thing that cannot be understood is told with its line, and nothing is taken. */
export function readICalendar(text: string, bounds: ICalendarBounds): { days: CalendarDay[]; problem: string | null } {
  try {
    return { days: daysOf(eventsOf(text, bounds.maxName), bounds), problem: null }
  } catch (error) {
    if (!(error instanceof ICalendarProblem)) throw error
    return { days: [], problem: error.message }
  }
}

function eventsOf(text: string, maxName: number): Event[] {
  const events: Event[] = []
  const open: string[] = []
  let last = 1
  let hasCalendar = false
  for (const content of contentLines(text)) {
    last = content.line
    const component = content.value.trim().toUpperCase()
    if (content.name === 'BEGIN') {
      if (open.length === 0 && component !== 'VCALENDAR') throw notACalendar(content)
      hasCalendar = true
      open.push(component)
      if (isEvent(open)) {
        if (events.length === MAX_EVENTS) throw new ICalendarProblem(last, `more than ${MAX_EVENTS} events`)
        events.push({ line: last, alsoOn: [], notOn: new Set(), isCanceled: false })
      }
    } else if (content.name === 'END') {
      if (open.pop() !== component)
        throw new ICalendarProblem(last, `END:${component.slice(0, 40)} ends nothing that was begun`)
    } else if (open.length === 0) throw notACalendar(content)
    else if (isEvent(open)) readProperty(events.at(-1) as Event, content, maxName)
  }
  if (!hasCalendar) throw new ICalendarProblem(1, 'the text must begin with BEGIN:VCALENDAR')
  if (open.length > 0) throw new ICalendarProblem(last, `the text ends before END:${open.at(-1)}`)
  if (events.length === 0) throw new ICalendarProblem(last, 'there is no VEVENT in the calendar')
  return events
}

const notACalendar = ({ line, name, value }: ContentLine): ICalendarProblem =>
  new ICalendarProblem(line, `BEGIN:VCALENDAR must come before ${cut(`${name}:${value}`)}`)

/** Alarms inside of events, and the rules of zones, have times of their own that are none of ours. */
const isEvent = (open: readonly string[]): boolean => open.length === 2 && open[1] === 'VEVENT'

function readProperty(event: Event, content: ContentLine, maxName: number): void {
  const { name, value, line } = content
  const days = () => value.split(',').map((item) => Math.floor(readICalendarTime(item, line).at / DAY_MS))
  if (name === 'DTSTART') event.start = readICalendarTime(value, line)
  else if (name === 'DTEND') event.endAt = readICalendarTime(value, line).at
  else if (name === 'DURATION') event.durationMs = readICalendarDuration(value, line)
  else if (name === 'RRULE') {
    if (event.rule) throw new ICalendarProblem(line, 'a second RRULE of the same event cannot be expanded')
    event.rule = readYearlyRule(content)
  } else if (name === 'RDATE') event.alsoOn.push(...days())
  else if (name === 'EXDATE') for (const day of days()) event.notOn.add(day)
  else if (name === 'EXRULE' || name === 'RECURRENCE-ID')
    throw new ICalendarProblem(line, `${name} cannot be expanded: write the days as events of their own`)
  else if (name === 'STATUS') event.isCanceled = value.trim().toUpperCase() === 'CANCELLED'
  else if (name === 'SUMMARY') event.name = summaryOf(value, maxName, line)
}

function summaryOf(value: string, maxName: number, line: number): string {
  const text = value.replace(/\\([nN,;\\])/g, (_, escaped: string) => (/n/i.test(escaped) ? ' ' : escaped))
  const name = [...text.replace(/\s+/g, ' ').trim()].slice(0, maxName / 2).join('')
  if (!isStorable(name)) throw new ICalendarProblem(line, 'SUMMARY has a character that cannot be stored')
  return name
}

function daysOf(events: readonly Event[], { now, maxDays }: ICalendarBounds): CalendarDay[] {
  const names = new Map<number, string | undefined>()
  const before = new Date(now).getUTCFullYear() + YEARS_AHEAD + 1
  const tooMany = events.filter(({ rule }) => rule)[MAX_RULES]
  if (tooMany) throw new ICalendarProblem(tooMany.line, `more than ${MAX_RULES} events that repeat`)
  for (const event of events) {
    const { first, length } = spanOf(event)
    if (event.isCanceled) continue
    const starts = event.rule ? daysOfRule(event.rule, first, before) : [first]
    for (const start of [...starts, ...event.alsoOn]) {
      if (event.notOn.has(start)) continue
      for (let day = start; day < start + length; day++) names.set(day, names.get(day) ?? event.name)
      if (names.size > maxDays)
        throw new ICalendarProblem(event.line, `a calendar has at most ${maxDays} days, and there are more`)
    }
  }
  return [...names].map(([day, name]) => (name ? { date: dateOfDay(day), name } : { date: dateOfDay(day) }))
}

/** The first day of an event and how many it has. Its end is the first instant that is no longer part of it. */
function spanOf({ line, start, endAt, durationMs }: Event): { first: number; length: number } {
  if (start === undefined) throw new ICalendarProblem(line, 'the event has no DTSTART')
  const end = endAt ?? start.at + (durationMs ?? (start.isDate ? DAY_MS : 0))
  if (end < start.at) throw new ICalendarProblem(line, 'the event ends (DTEND) before it starts (DTSTART)')
  const first = Math.floor(start.at / DAY_MS)
  const length = Math.max(1, Math.ceil(end / DAY_MS) - first)
  if (length > MAX_DAYS_OF_EVENT)
    throw new ICalendarProblem(line, `the event has ${length} days; at most ${MAX_DAYS_OF_EVENT} are taken`)
  return { first, length }
}
