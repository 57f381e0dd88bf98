import { hash } from 'node:crypto'
import { daysInMonth } from './calendar-day.ts'
import {
  type CronField,
  checkStep,
  cronFields,
  DAY_OF_MONTH,
  DAY_OF_WEEK,
  type FieldRange,
  MONTH,
  readRange,
} from './cron-field.ts'

/**
 * `H` in a cron expression stands for a number that depends on the job alone, so that jobs with the same expression do not
 * all fire at once: `H` one of the field, `H(0-29)` one of the range, `H/15` every 15 from a start of its own, and
 * `H(0-29)/10` the same within the range.
 */
const HASHED = /^H(?:\(([^()]+)\))?(?:\/(\d{1,3}))?$/

/** Months have between 28 and 31 days, and a job that asks for one day a month shall have it in each. */
const MOST_DAYS = 28
const LEAP_YEAR = 2024

interface Hashed extends FieldRange {
  step: number | null
}

function wholeField(field: CronField): FieldRange {
  if (field === DAY_OF_MONTH) return { from: 1, to: MOST_DAYS, isSingle: false }
  return { from: field.min, to: field === DAY_OF_WEEK ? 6 : field.max, isSingle: false }
}

function readHashed(item: string, field: CronField): Hashed | undefined {
  const match = HASHED.exec(item)
  if (match === null) return undefined
  const range = match[1] === undefined ? wholeField(field) : readRange(match[1], field)
  if (match[2] === undefined) return { ...range, step: null }
  const step = Number(match[2])
  checkStep(step, Math.max(1, range.to - range.from), field)
  return { ...range, step }
}

/** The one spelling of an item that begins with `H`; undefined for others. */
export function canonicalHashed(item: string, field: CronField): string | undefined {
  const hashed = readHashed(item, field)
  if (hashed === undefined) return undefined
  const { from, to, step } = hashed
  const whole = wholeField(field)
  const isWhole = from === whole.from && to === whole.to
  if (from === to) return String(from === 7 && field === DAY_OF_WEEK ? 0 : from)
  if (step === 1) return isWhole && field !== DAY_OF_MONTH ? '*' : `${from}-${to}`
  return `H${isWhole ? '' : `(${from}-${to})`}${step === null ? '' : `/${step}`}`
}

export function hasHashes(cron: string): boolean {
  return cron.includes('H')
}

/** A canonical expression with numbers where it had `H`: the same ones for a job each time, other ones for each field. */
export function withoutHashes(cron: string, jobId: string): string {
  if (!hasHashes(cron)) return cron
  const bytes = hash('sha256', jobId, 'buffer')
  const parts = cron.split(' ')
  // Counted from the end: a field draws the same number whether the expression has seconds or not.
  const fields = cronFields(parts.length) ?? []
  const resolved = fields.map((field, index) => {
    const number = bytes.readUInt32BE(4 * (fields.length - 1 - index))
    const items = (parts[index] as string).split(',')
    return items.map((item) => resolvedItem(item, field, number)).join(',')
  })
  // Canonical: seconds that are 0 are left out.
  if (resolved.length === 6 && resolved[0] === '0') resolved.shift()
  return resolved.join(' ')
}

/** With the numbers for `H` that fire least: the last of the days, and the month that has fewest. */
export function rarestOfHashes(cron: string): string {
  const parts = cron.split(' ')
  const fields = cronFields(parts.length) ?? []
  const rarest = fields.map((field, index) => {
    const items = (parts[index] as string).split(',')
    return items.map((item) => rarestItem(item, field)).join(',')
  })
  return rarest.join(' ')
}

function rarestItem(item: string, field: CronField): string {
  const hashed = readHashed(item, field)
  if (hashed === undefined) return item
  const { from, to, step } = hashed
  const starts = Math.min(step ?? to - from + 1, to - from + 1)
  let rarest = from
  for (let start = from; start < from + starts; start++) {
    if (field === DAY_OF_MONTH || (field === MONTH && mostDays(start, hashed) < mostDays(rarest, hashed)))
      rarest = start
  }
  return step === null ? String(rarest) : `${rarest}-${to}/${step}`
}

/** Of the months from a start on. */
function mostDays(start: number, { to, step }: Hashed): number {
  let most = 0
  for (let month = start; month <= to; month += step ?? to) most = Math.max(most, daysInMonth(LEAP_YEAR, month))
  return most
}

function resolvedItem(item: string, field: CronField, number: number): string {
  const hashed = readHashed(item, field)
  if (hashed === undefined) return item
  const { from, to, step } = hashed
  if (step === null) return String(from + (number % (to - from + 1)))
  return `${from + (number % Math.min(step, to - from + 1))}-${to}/${step}`
}
