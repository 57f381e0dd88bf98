import { notUnderstood, shown } from './not-understood.ts'

/**
 * A length of time, in its two kinds. `clock` is elapsed time, the same everywhere. `date` is counted on the calendar of a
 * zone: a day may have 23 hours, a month 28 days.
 */
export type Duration = { kind: 'clock'; ms: number } | { kind: 'date'; months: number; days: number; ms: number }

export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 3_600_000
export const DAY_MS = 86_400_000
/** Nothing in Belfry lies further away than 100 years. */
export const MAX_DURATION_MS = 36_525 * DAY_MS
const MAX_MONTHS = 1_200
/** Longer texts are not durations, and are not worth the reading. */
const MAX_TEXT = 64

const ISO =
  /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+(?:[.,]\d+)?)H)?(?:(\d+(?:[.,]\d+)?)M)?(?:(\d+(?:[.,]\d+)?)S)?)?$/
const SHORT =
  /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$/
const SPOKEN =
  /^(\d+(?:\.\d+)?)\s*(ms|milliseconds?|millis|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)$/i

/** Reads ISO 8601 (`PT15M`, `P1DT12H`, `P1M`) and the short forms (`90s`, `1h30m`, `2d`, `500ms`). */
export function parseDuration(text: unknown): Duration {
  if (typeof text === 'number') {
    const seconds = Number.isFinite(text) && text > 0 ? `${text}s` : '90s'
    throw notUnderstood(`must be a duration with its unit, not the number ${text}`, seconds)
  }
  if (typeof text !== 'string') throw notUnderstood(`must be a duration such as "90s" or "PT15M", not ${shown(text)}`)
  if (text.length > MAX_TEXT) throw notUnderstood(`${shown(text)} is too long for a duration`)
  const duration = parseIso(text) ?? parseShort(text)
  if (duration === null) throw notADuration(text)
  if (!Number.isInteger(duration.ms)) throw notUnderstood(`${shown(text)} is finer than a millisecond`)
  const dateMs = duration.kind === 'date' ? duration.days * DAY_MS : 0
  const months = duration.kind === 'date' ? duration.months : 0
  if (duration.ms + dateMs > MAX_DURATION_MS || months > MAX_MONTHS) {
    throw notUnderstood(`${shown(text)} is longer than 100 years`)
  }
  return duration
}

/** Elapsed milliseconds, for timeouts and delays: a day is 24 hours, a month has no fixed length and is refused. */
export function clockMs(text: unknown): number {
  const duration = parseDuration(text)
  if (duration.kind === 'clock') return duration.ms
  if (duration.months > 0) {
    throw notUnderstood(`${shown(text)} has no fixed length: months and years are not elapsed time`, 'P30D')
  }
  return duration.days * DAY_MS + duration.ms
}

/** The one spelling of a duration in ISO 8601, so that equal durations are equal texts. */
export function formatDuration(duration: Duration): string {
  let text = 'P'
  if (duration.kind === 'date') {
    const years = Math.floor(duration.months / 12)
    if (years > 0) text += `${years}Y`
    if (duration.months % 12 > 0) text += `${duration.months % 12}M`
    if (duration.days > 0) text += `${duration.days}D`
  }
  const hours = Math.floor(duration.ms / HOUR_MS)
  const minutes = Math.floor((duration.ms % HOUR_MS) / MINUTE_MS)
  const secondMs = duration.ms % MINUTE_MS
  let time = ''
  if (hours > 0) time += `${hours}H`
  if (minutes > 0) time += `${minutes}M`
  if (secondMs > 0) time += `${secondMs / SECOND_MS}S`
  if (time !== '') text += `T${time}`
  return text === 'P' ? 'PT0S' : text
}

function parseIso(text: string): Duration | null {
  const match = ISO.exec(text)
  if (match === null || text === 'P' || text.endsWith('T')) return null
  const [, years, months, weeks, days, hours, minutes, seconds] = match
  if (!fractionIsLast([hours, minutes, seconds])) return null
  const ms = sumMs([
    [hours, HOUR_MS],
    [minutes, MINUTE_MS],
    [seconds, SECOND_MS],
  ])
  if ((years ?? months ?? weeks ?? days) === undefined) return { kind: 'clock', ms }
  return dateDuration(whole(years) * 12 + whole(months), whole(weeks) * 7 + whole(days), ms)
}

function parseShort(text: string): Duration | null {
  const match = SHORT.exec(text)
  if (match === null || text === '') return null
  const [, weeks, days, hours, minutes, seconds, millis] = match
  if (!fractionIsLast([hours, minutes, seconds, millis])) return null
  const ms = sumMs([
    [hours, HOUR_MS],
    [minutes, MINUTE_MS],
    [seconds, SECOND_MS],
    [millis, 1],
  ])
  if ((weeks ?? days) === undefined) return { kind: 'clock', ms }
  return dateDuration(0, whole(weeks) * 7 + whole(days), ms)
}

/** `P0D` says no more than `PT0S`. */
function dateDuration(months: number, days: number, ms: number): Duration {
  return months === 0 && days === 0 ? { kind: 'clock', ms } : { kind: 'date', months, days, ms }
}

function whole(digits: string | undefined): number {
  return digits === undefined ? 0 : Number(digits)
}

function fractionIsLast(parts: (string | undefined)[]): boolean {
  const given = parts.filter((part) => part !== undefined)
  return given.slice(0, -1).every((part) => !/[.,]/.test(part))
}

/** Exact: the fraction is scaled as a whole number, since 1.001 × 1000 is not 1001 in floating point. */
function sumMs(parts: [string | undefined, number][]): number {
  let total = 0
  for (const [part, unitMs] of parts) {
    if (part === undefined) continue
    const [digits = '0', fraction = ''] = part.replace(',', '.').split('.')
    const significant = fraction.replace(/0+$/, '').slice(0, 9)
    total += Number(digits) * unitMs + (Number(significant || '0') * unitMs) / 10 ** significant.length
  }
  return total
}

function notADuration(text: string): Error {
  const trimmed = text.trim()
  if (trimmed.startsWith('-')) return notUnderstood(`${shown(text)} is negative, and a duration cannot be`)
  if (/^\d+(\.\d+)?$/.test(trimmed)) return notUnderstood(`${shown(text)} has no unit`, `${trimmed}s`)
  const spoken = SPOKEN.exec(trimmed)
  const meant = spoken === null ? trimmed : `${spoken[1]}${shortUnit((spoken[2] as string).toLowerCase())}`
  const suggestion = [meant, meant.toUpperCase()].find((candidate) => parseIso(candidate) ?? parseShort(candidate))
  return notUnderstood(`${shown(text)} is not a duration such as "90s", "10m" or "PT15M"`, suggestion)
}

function shortUnit(word: string): string {
  return word === 'ms' || word.startsWith('milli') ? 'ms' : word.charAt(0)
}
