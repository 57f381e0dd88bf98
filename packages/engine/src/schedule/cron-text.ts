import {
  type CronField,
  checkStep,
  cronFields,
  DAY_OF_MONTH,
  DAY_OF_WEEK,
  readNumber,
  readRange,
} from './cron-field.ts'
import { canonicalItems } from './cron-list.ts'
import { canonicalHashed } from './hashed-field.ts'
import { notUnderstood, shown } from './not-understood.ts'

/**
 * Reads a cron expression and writes it in its one canonical form: five fields (six if seconds are used), numbers instead
 * of names, `5/15` as `5-59/15`, `1,1,2-4,3` as `1-4`, `@daily` as what it stands for. Equal expressions become equal texts, and whatever the
 * evaluator gets has been checked here, with messages in the writer's own numbers.
 */

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
/** A month has at most so many days before its last one. */
const MOST_BEFORE_LAST = 30

/** `H` stays: what it stands for depends on the job (see `resolveSpec`). */
export function canonicalCron(text: unknown): string {
  if (typeof text !== 'string')
    throw notUnderstood(`must be a cron expression such as "0 9 * * 1-5", not ${shown(text)}`)
  if (text.length > MAX_TEXT) throw notUnderstood('is too long for a cron expression')
  const upper = text.trim().toUpperCase()
  if (upper.startsWith('@')) return nickname(upper)
  const parts = upper.split(/\s+/)
  const fields = cronFields(parts.length)
  if (fields === undefined) {
    const count = upper === '' ? 0 : parts.length
    throw notUnderstood(`must have 5 fields (or 6, with seconds first), and ${shown(text)} has ${count}`)
  }
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

function canonicalField(text: string, field: CronField): string {
  // Quartz writes ? for a day that the other day field decides; it means what * means.
  if (text === '?' && (field === DAY_OF_MONTH || field === DAY_OF_WEEK)) return '*'
  const items = text.split(',').map((item) => canonicalItem(item, field))
  return items.includes('*') ? '*' : canonicalItems(items, field)
}

function canonicalItem(item: string, field: CronField): string {
  if (item === '*') return item
  if (item === '') throw notUnderstood(`the ${field.name} has an empty place in its list`)
  const special = canonicalHashed(item, field) ?? specialDay(item, field) ?? specialWeekday(item, field)
  if (special !== undefined) return special
  const stepped = STEP.exec(item)
  if (stepped !== null) return step(stepped[1] as string, Number(stepped[2]), field)
  const { from, to } = readRange(item, field)
  return from === to ? single(from, field) : `${from}-${to}`
}

/** `L` the last day, `L-3` three days before it, `LW` the last weekday, `15W` the weekday nearest to the 15th. */
function specialDay(item: string, field: CronField): string | undefined {
  if (field !== DAY_OF_MONTH) return undefined
  if (item === 'L' || item === 'LW') return item
  const nearest = /^(\d+)W$/.exec(item)
  if (nearest !== null) return `${readNumber(nearest[1] as string, field)}W`
  const before = /^L-(\d{1,3})$/.exec(item)
  if (before === null) return undefined
  const days = Number(before[1])
  if (days > MOST_BEFORE_LAST) throw notUnderstood(`no month has a day ${days} days before its last: L- takes 1 to 30`)
  return days === 0 ? 'L' : `L-${days}`
}

/** `5#2` the second Friday, `5L` or `5#L` the last Friday. */
function specialWeekday(item: string, field: CronField): string | undefined {
  if (field !== DAY_OF_WEEK) return undefined
  const last = /^([A-Z]{3}|\d)(?:L|#L)$/.exec(item)
  if (last !== null) return `${readNumber(last[1] as string, field) % 7}L`
  const nth = /^([A-Z]{3}|\d)#(\d+)$/.exec(item)
  if (nth === null) return undefined
  const which = Number(nth[2])
  if (which < 1 || which > 5) throw notUnderstood(`a month has no ${which}th weekday: # takes 1 to 5 or L`)
  return `${readNumber(nth[1] as string, field) % 7}#${which}`
}

function step(base: string, by: number, field: CronField): string {
  if (by < 1) checkStep(by, field.max, field)
  if (base === '*') {
    checkStep(by, field.max, field)
    return by === 1 ? '*' : `*/${by}`
  }
  const { from, to, isSingle } = readRange(base, field)
  const until = isSingle ? field.max : to
  if (from === until) return single(from, field)
  checkStep(by, field.max, field)
  return by === 1 ? `${from}-${until}` : `${from}-${until}/${by}`
}

function single(value: number, field: CronField): string {
  return String(field === DAY_OF_WEEK ? value % 7 : value)
}
