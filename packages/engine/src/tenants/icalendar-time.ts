import { DAY_MS } from '../schedule/duration.ts'
import { dayOf } from './calendar-day.ts'
import { cut, ICalendarProblem } from './icalendar-lines.ts'

/** A date, or a date with a time, on the clock where it is written: zones do not matter for whole days. */
export interface ICalendarTime {
  /** Milliseconds on that clock, counted as if it were in UTC. */
  at: number
  isDate: boolean
}

export function readICalendarTime(text: string, line: number): ICalendarTime {
  const match = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)Z?)?$/.exec(text.trim())
  if (!match) throw new ICalendarProblem(line, `${cut(text)} is no date such as 20261225 and no 20261225T090000`)
  const [, year, month, day, hour, minute, second] = match
  const date = dayOf(Number(year), Number(month), Number(day))
  if (date === null) throw new ICalendarProblem(line, `there is no day ${text.slice(0, 8)} between 1970 and 2200`)
  if (hour === undefined) return { at: date * DAY_MS, isDate: true }
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60)
    throw new ICalendarProblem(line, `there is no time ${text.slice(9)}`)
  return { at: date * DAY_MS + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1_000, isDate: false }
}

/** `P1D`, `P2W`, `PT8H30M`. */
export function readICalendarDuration(text: string, line: number): number {
  const match = /^\+?P(?:(\d{1,4})W|(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?)$/.exec(
    text.trim().toUpperCase(),
  )
  const [, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match ?? []
  const ms =
    (Number(weeks) * 7 + Number(days)) * DAY_MS +
    ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
  if (!match || ms === 0) throw new ICalendarProblem(line, `${cut(text)} is no duration such as P1D`)
  return ms
}
