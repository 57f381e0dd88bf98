import { NotTaken } from './entry.ts'
import { clockChangesAt, instantOfLocal } from './zone.ts'

export type EventBridgeTime =
  | { kind: 'cron'; cron: string; years: YearBounds; notes: string[] }
  | { kind: 'rate'; every: string }
  | { kind: 'at'; runAt: Date; notes: string[] }

interface YearBounds {
  startAt?: Date
  endAt?: Date
}

const EXPRESSION = /^(cron|rate|at)\((.*)\)$/s
const UNITS: Readonly<Record<string, string>> = { second: 'S', minute: 'M', hour: 'H', day: 'D' }

const FIRST_YEAR = 1970
const LAST_YEAR = 2199

/** `cron(0 9 ? * 2-6 *)`, `rate(5 minutes)`, `at(2026-12-01T09:00:00)`. */
export function readExpression(text: string, zone: string): EventBridgeTime {
  const [, kind, inside = ''] = EXPRESSION.exec(text.trim()) ?? []
  if (kind === 'cron') return readCron(inside.trim().toUpperCase().split(/\s+/), text, zone)
  if (kind === 'rate') return readRate(inside, text)
  if (kind === 'at') return readAt(inside.trim(), text, zone)
  throw new NotTaken(`${JSON.stringify(text)} is none of cron(…), rate(…) and at(…)`)
}

function readCron(fields: readonly string[], text: string, zone: string): EventBridgeTime {
  const [minute, hour, day, month, weekday, year] = fields
  if (fields.length !== 6 || !minute || !hour || !day || !month || !weekday || !year)
    throw new NotTaken(`${text} must have six fields, from minutes to year, and has ${fields.length}`)
  if (day !== '?' && weekday !== '?')
    throw new NotTaken(`${text} must have ? for the day of the month or for the day of the week`)
  const written = weekday === '?' ? '*' : weekday.split(',').map(weekdayOf).join(',')
  const notes =
    written === weekday || written === '*' || !/\d/.test(weekday)
      ? []
      : [`day-of-week 1 is Sunday there and 0 is here: ${weekday} is written as ${written}`]
  return {
    kind: 'cron',
    cron: [minute, hour, day === '?' ? '*' : day, month, written].join(' '),
    years: yearsOf(year, zone),
    notes,
  }
}

/** 1 to 7 are Sunday to Saturday; a step without an end goes on to Saturday; a lone L is Saturday. */
function weekdayOf(item: string): string {
  if (item === '*' || item === '*/1') return '*'
  if (item === 'L') return '6'
  const stepped = /^(\*|[A-Z]{3}|\d)(?:-([A-Z]{3}|\d))?\/(\d)$/.exec(item)
  if (stepped !== null) {
    const [, from = '', to, by] = stepped
    return `${from === '*' ? '0' : dayOf(from)}-${to === undefined ? '6' : dayOf(to)}/${by}`
  }
  return item
    .split('-')
    .map((bound) => bound.replace(/^\d(?=L|#|$)/, dayOf))
    .join('-')
}

function dayOf(day: string): string {
  if (!/^\d$/.test(day)) return day
  const number = Number(day)
  if (number >= 1 && number <= 7) return String(number - 1)
  throw new NotTaken(`the day of the week must be 1 (Sunday) to 7 (Saturday), not ${day}`)
}

/** Years become bounds, which they can if they follow each other. */
function yearsOf(text: string, zone: string): YearBounds {
  if (text === '*') return {}
  const [, first, last = first] = /^(\d{4})(?:-(\d{4}))?$/.exec(text) ?? []
  if (first === undefined || Number(last) < Number(first))
    throw new NotTaken(
      `the years ${text} cannot be taken over: only one year, or a range such as 2026-2028, becomes bounds`,
    )
  if (Number(first) < FIRST_YEAR || Number(last) > LAST_YEAR)
    throw new NotTaken(`the years ${text} are no years of EventBridge, which go from ${FIRST_YEAR} to ${LAST_YEAR}`)
  return {
    startAt: instantOfLocal(`${first}-01-01T00:00:00`, zone),
    endAt: instantOfLocal(`${Number(last) + 1}-01-01T00:00:00`, zone),
  }
}

/** A day of a rate is 24 hours, whatever the clocks do. */
function readRate(inside: string, text: string): EventBridgeTime {
  const [, count = '', unit = ''] = /^\s*(\d+)\s+(second|minute|hour|day)s?\s*$/.exec(inside) ?? []
  const letter = UNITS[unit]
  if (letter === undefined || Number(count) === 0)
    throw new NotTaken(`${text} must look like rate(5 minutes), with minutes, hours or days`)
  return { kind: 'rate', every: letter === 'D' ? `PT${Number(count) * 24}H` : `PT${Number(count)}${letter}` }
}

function readAt(inside: string, text: string, zone: string): EventBridgeTime {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(inside))
    throw new NotTaken(`${text} must look like at(2026-12-01T09:00:00)`)
  // Date reads 30 February as 2 March.
  const local = Date.parse(`${inside}Z`)
  if (Number.isNaN(local) || !new Date(local).toISOString().startsWith(inside))
    throw new NotTaken(`${text} names a day or time that does not exist`)
  return { kind: 'at', runAt: instantOfLocal(inside, zone), notes: clockChangesAt(inside, zone) }
}
