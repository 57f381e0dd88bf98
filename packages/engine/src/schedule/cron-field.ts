import { notUnderstood, shown } from './not-understood.ts'

/** One of the places of a cron expression, and the numbers it takes. */
export interface CronField {
  name: string
  min: number
  max: number
  names?: readonly string[]
}

const MONTHS = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC']
const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

const SECOND: CronField = { name: 'second', min: 0, max: 59 }
const MINUTE: CronField = { name: 'minute', min: 0, max: 59 }
const HOUR: CronField = { name: 'hour', min: 0, max: 23 }
export const DAY_OF_MONTH: CronField = { name: 'day of month', min: 1, max: 31 }
export const MONTH: CronField = { name: 'month', min: 1, max: 12, names: MONTHS }
export const DAY_OF_WEEK: CronField = { name: 'day of week', min: 0, max: 7, names: WEEKDAYS }

const FIVE = [MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK] as const
const SIX = [SECOND, ...FIVE] as const

/** The fields of an expression that has so many parts; seconds come first where there are six. */
export function cronFields(parts: number): readonly CronField[] | undefined {
  if (parts === 5) return FIVE
  return parts === 6 ? SIX : undefined
}

export interface FieldRange {
  from: number
  to: number
  isSingle: boolean
}

const RANGE = /^([^-]+)-([^-]+)$/

/** `5`, `MON` or `1-5`. Sunday may end a week: SAT-SUN is 6-7. */
export function readRange(text: string, field: CronField): FieldRange {
  const bounds = RANGE.exec(text)
  if (bounds === null) {
    const value = readNumber(text, field)
    return { from: value, to: value, isSingle: true }
  }
  const from = readNumber(bounds[1] as string, field)
  let to = readNumber(bounds[2] as string, field)
  if (field === DAY_OF_WEEK && to === 0 && from > 0) to = 7
  if (from > to) throw notUnderstood(`the ${field.name} ${shown(text)} runs backwards`)
  return { from, to, isSingle: false }
}

export function readNumber(text: string, field: CronField): number {
  const named = field.names?.indexOf(text) ?? -1
  if (named >= 0) return named + (field.min === 1 ? 1 : 0)
  if (!/^\d{1,4}$/.test(text)) throw notUnderstood(`the ${field.name} ${shown(text)} cannot be read`)
  const value = Number(text)
  if (value < field.min || value > field.max) {
    throw notUnderstood(`the ${field.name} must be ${field.min} to ${field.max}, not ${value}`)
  }
  return value
}

export function checkStep(by: number, most: number, field: CronField): void {
  if (by < 1) throw notUnderstood(`the ${field.name} has a step of 0`)
  if (by > most) throw notUnderstood(`the ${field.name} has a step of ${by}, and only ${most} are possible`)
}
