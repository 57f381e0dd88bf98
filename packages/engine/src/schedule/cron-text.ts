import { notUnderstood, shown } from './not-understood.ts'

/**
 * Reads a cron expression and writes it in its one canonical form: five fields (six if seconds are used), numbers instead
 * of names, `5/15` as `5-59/15`, `@daily` as what it stands for. Equal expressions become equal texts, and whatever the
 * evaluator gets has been checked here, with messages in the writer's own numbers.
 */

interface Field {
  name: string
  min: number
  max: number
  names?: readonly string[]
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const SECOND: Field = { name: 'second', min: 0, max: 59 }
const FIELDS: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  { name: 'month', min: 1, max: 12, names: MONTHS },
  { name: 'day of week', min: 0, max: 7, names: DAYS },
]

const NICKNAMES: Record<string, string> = {
  '@YEARLY': '0 0 1 1 *',
  '@ANNUALLY': '0 0 1 1 *',
  '@MONTHLY': '0 0 1 * *',
  '@WEEKLY': '0 0 * * 0',
  '@DAILY': '0 0 * * *',
  '@MIDNIGHT': '0 0 * * *',
  '@HOURLY': '0 * * * *',
}

const MAX_TEXT = 512
const STEP = /^(.+)\/(\d{1,3})$/
const RANGE = /^([^-]+)-([^-]+)$/

export function canonicalCron(text: unknown): string {
  if (typeof text !== 'string')
    throw notUnderstood(`must be a cron expression such as "0 9 * * 1-5", not ${shown(text)}`)
  if (text.length > MAX_TEXT) throw notUnderstood('is too long for a cron expression')
  const upper = text.trim().toUpperCase()
  if (upper.startsWith('@')) return nickname(upper)
  const parts = upper.split(/\s+/)
  if (parts.length !== 5 && parts.length !== 6) {
    const count = upper === '' ? 0 : parts.length
    throw notUnderstood(`must have 5 fields (or 6, with seconds first), and ${shown(text)} has ${count}`)
  }
  const fields = parts.length === 6 ? [SECOND, ...FIELDS] : FIELDS
  const canonical = fields.map((field, index) => canonicalField(parts[index] as string, field))
  if (canonical.length === 6 && canonical[0] === '0') canonical.shift()
  return canonical.join(' ')
}

function nickname(upper: string): string {
  const expression = Object.hasOwn(NICKNAMES, upper) ? NICKNAMES[upper] : undefined
  if (expression !== undefined) return expression
  if (upper === '@REBOOT') throw notUnderstood('@reboot is no time: nothing fires when a machine starts')
  throw notUnderstood(`${shown(upper.toLowerCase())} is not one of @yearly, @monthly, @weekly, @daily, @hourly`)
}

function canonicalField(text: string, field: Field): string {
  // Quartz writes ? for a day that the other day field decides; it means what * means.
  if (text === '?' && field.name.startsWith('day')) return '*'
  const items = text.split(',').map((item) => canonicalItem(item, field))
  return items.includes('*') ? '*' : items.join(',')
}

function canonicalItem(item: string, field: Field): string {
  if (item === '*') return item
  if (item === '') throw notUnderstood(`the ${field.name} has an empty place in its list`)
  if (/^H\b/.test(item)) throw notUnderstood(`the ${field.name} uses H, which is not supported yet`)
  const special = field.name === 'day of month' ? specialDay(item, field) : specialWeekday(item, field)
  if (special !== undefined) return special
  const stepped = STEP.exec(item)
  if (stepped === null) return range(item, field).text
  return step(stepped[1] as string, Number(stepped[2]), field)
}

/** `L` the last day, `LW` the last weekday, `15W` the weekday nearest to the 15th. */
function specialDay(item: string, field: Field): string | undefined {
  if (item === 'L' || item === 'LW') return item
  const nearest = /^(\d+)W$/.exec(item)
  return nearest === null ? undefined : `${number(nearest[1] as string, field)}W`
}

/** `5#2` the second Friday, `5L` or `5#L` the last Friday. */
function specialWeekday(item: string, field: Field): string | undefined {
  if (field.name !== 'day of week') return undefined
  const last = /^([A-Z]{3}|\d)(?:L|#L)$/.exec(item)
  if (last !== null) return `${number(last[1] as string, field) % 7}L`
  const nth = /^([A-Z]{3}|\d)#(\d+)$/.exec(item)
  if (nth === null) return undefined
  const which = Number(nth[2])
  if (which < 1 || which > 5) throw notUnderstood(`a month has no ${which}th weekday: # takes 1 to 5 or L`)
  return `${number(nth[1] as string, field) % 7}#${which}`
}

function step(base: string, by: number, field: Field): string {
  if (by < 1) throw notUnderstood(`the ${field.name} has a step of 0`)
  if (base === '*') {
    if (by > field.max) throw notUnderstood(`the ${field.name} has a step of ${by}, and only ${field.max} are possible`)
    return by === 1 ? '*' : `*/${by}`
  }
  const { from, to, single } = range(base, field)
  const until = single ? field.max : to
  if (from === until) return String(from)
  if (by > field.max) throw notUnderstood(`the ${field.name} has a step of ${by}, and only ${field.max} are possible`)
  return by === 1 ? `${from}-${until}` : `${from}-${until}/${by}`
}

function range(text: string, field: Field): { from: number; to: number; single: boolean; text: string } {
  const bounds = RANGE.exec(text)
  if (bounds === null) {
    const value = number(text, field)
    const canonical = field.name === 'day of week' ? value % 7 : value
    return { from: value, to: value, single: true, text: String(canonical) }
  }
  const from = number(bounds[1] as string, field)
  let to = number(bounds[2] as string, field)
  // Sunday ends the week here: SAT-SUN is 6-7.
  if (field.name === 'day of week' && to === 0 && from > 0) to = 7
  if (from > to) throw notUnderstood(`the ${field.name} ${shown(text)} runs backwards`)
  return { from, to, single: false, text: from === to ? String(from) : `${from}-${to}` }
}

function number(text: string, field: Field): number {
  const named = field.names?.indexOf(text) ?? -1
  if (named >= 0) return named + (field.min === 1 ? 1 : 0)
  if (!/^\d{1,4}$/.test(text)) throw notUnderstood(`the ${field.name} ${shown(text)} cannot be read`)
  const value = Number(text)
  if (value < field.min || value > field.max) {
    throw notUnderstood(`the ${field.name} must be ${field.min} to ${field.max}, not ${value}`)
  }
  return value
}
