import type { Instant } from '../runtime/clock.ts'
import { DAY_MS, type Duration, formatDuration } from './duration.ts'
import { parseInstant } from './instant.ts'
import { readInterval } from './interval-schedule.ts'
import { notUnderstood, shown } from './not-understood.ts'
import { END_OF_TIME } from './schedule.ts'

export interface Repeating {
  /** Canonical. */
  every: string
  startAt?: Instant
  endAt?: Instant
  count?: number
}

const REPEATING = /^R([^/]*)\/(.*)$/s
const MAX_TEXT = 128
const MAX_COUNT = 1_000_000_000
/** Whatever begins in the last year that can be written has hardly a second time. */
const LAST_START = END_OF_TIME - 366 * DAY_MS

/**
 * Reads a repeating interval of ISO 8601; null for what is none. `R5` means five fire times, `R` no end. Each interval
 * fires where it begins: `R5/start/PT15M` at the start and four times after it, `R5/start/end` likewise with the time
 * between the two, and `R5/PT15M/end` five times, of which the last begins a quarter of an hour before the end.
 */
export function readRepeating(text: string): Repeating | null {
  const match = REPEATING.exec(text)
  if (match === null || text.length > MAX_TEXT) return null
  const count = readCount(match[1] as string, text)
  const parts = (match[2] as string).split('/')
  const [first = '', second] = parts
  if (parts.length > 2) throw notUnderstood(`${shown(text)} has more than a start and a duration or an end`)
  const counted = count === null ? {} : { count }
  if (second === undefined) return { every: formatDuration(readInterval(first)), ...counted }
  if (isDuration(first)) return endingAt(readEdge(second), readInterval(first), count, text)
  const startAt = readEdge(first)
  if (isDuration(second)) return { every: formatDuration(readInterval(second)), startAt, ...counted }
  const lengthMs = readEdge(second) - startAt
  if (lengthMs <= 0) throw notUnderstood(`${shown(text)} ends before it starts`)
  return { every: formatDuration(readInterval(formatDuration({ kind: 'clock', ms: lengthMs }))), startAt, ...counted }
}

function readCount(digits: string, text: string): number | null {
  if (digits === '') return null
  if (!/^-?\d+$/.test(digits)) throw notUnderstood(`${shown(text)} must begin with R, or R and a number: R5/PT15M`)
  const count = Number(digits)
  if (count < 0) throw notUnderstood(`R${digits} is negative: R alone repeats without an end`, text.replace(digits, ''))
  if (count === 0) throw notUnderstood('R0 never fires: R1 fires once, and R without a number has no end')
  if (count > MAX_COUNT)
    throw notUnderstood(`R${digits} is too many times: R takes 1 to ${MAX_COUNT}, and R alone has no end`)
  return count
}

function isDuration(text: string): boolean {
  return /^p/i.test(text)
}

function readEdge(text: string): Instant {
  if (/^\d{4}-/.test(text) && Number(text.slice(0, 4)) < 1970) throw notUnderstood(`${shown(text)} lies before 1970`)
  const at = parseInstant(text)
  if (at > LAST_START) throw notUnderstood(`${shown(text)} lies too far ahead`)
  return at
}

function endingAt(endAt: Instant, duration: Duration, count: number | null, text: string): Repeating {
  if (count === null) {
    throw notUnderstood(`${shown(text)} ends without a number of times to count back: write R5/…, or a start instead`)
  }
  // Months have no fixed length to count back, and the 31st would not come back.
  if (duration.kind === 'date' && duration.months > 0) {
    throw notUnderstood(`${shown(text)} cannot be counted back in months: write a start instead of the end`)
  }
  const days = duration.kind === 'date' ? duration.days * DAY_MS : 0
  const startAt = endAt - count * (days + duration.ms)
  if (startAt < 0) throw notUnderstood(`${shown(text)} would start before 1970`)
  return { every: formatDuration(duration), startAt, endAt, count }
}
