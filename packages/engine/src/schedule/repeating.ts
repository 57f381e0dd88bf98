import type { Instant } from '../runtime/clock.ts'
import { formatDuration } from './duration.ts'
import { parseInstant } from './instant.ts'
import { readInterval } from './interval-schedule.ts'
import { notUnderstood, shown } from './not-understood.ts'

export interface Repeating {
  /** Canonical. */
  every: string
  startAt?: Instant
  endAt?: Instant
  count?: number
}

const REPEATING = /^R(-?\d*)\//i

/** Reads an ISO 8601 repeating interval such as `R5/2026-12-01T00:00:00Z/PT15M`; null for what is none. */
export function readRepeating(text: string): Repeating | null {
  const match = REPEATING.exec(text)
  if (match === null) return null
  const count = match[1] === '' ? {} : { count: Number(match[1]) }
  const [first, second, ...more] = text.slice(match[0].length).split('/')
  if (first === undefined || more.length > 0) throw notUnderstood(`${shown(text)} is not a repeating interval`)
  if (second === undefined) return { every: formatDuration(readInterval(first)), ...count }
  return { every: formatDuration(readInterval(second)), startAt: parseInstant(first), ...count }
}
