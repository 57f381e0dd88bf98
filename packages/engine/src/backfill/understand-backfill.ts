import { refusal } from '../errors.ts'
import { Complaints, isRecord, join, readInteger } from '../input/read-fields.ts'
import { nearestName } from '../job/nearest-name.ts'
import type { Instant } from '../runtime/clock.ts'
import { parseInstant } from '../schedule/instant.ts'
import { shown } from '../schedule/not-understood.ts'

/** What a backfill may have in flight at a time. */
const MAX_CONCURRENCY = 100
/** As many times as one backfill may hold; whoever wants more asks for one after the other. */
export const MAX_TIMES = 100_000
/** More than so many must be confirmed. */
export const UNCONFIRMED = 10_000
/** Before it there is no schedule to speak of. */
const EARLIEST: Instant = 0

export interface BackfillInput {
  /** Half-open: a time at `from` is run, one at `to` is not. */
  from: Date | string
  to: Date | string
  /** How many of its runs may be alive at a time; 1 unless given. */
  concurrency?: number
  /** The `count` that a dry run answered: for more than 10,000 times. */
  confirmCount?: number
}

export interface UnderstoodBackfill {
  from: Instant
  to: Instant
  concurrency: number
  confirmCount: number | null
}

const FIELDS = ['from', 'to', 'concurrency', 'confirmCount'] as const

export function understandBackfill(input: unknown): UnderstoodBackfill {
  const complaints = new Complaints()
  const understood = understand(complaints, input)
  if (understood === null || complaints.list.length > 0) throw complaints.error('invalid_argument')
  return understood
}

function understand(complaints: Complaints, input: unknown): UnderstoodBackfill | null {
  if (!isRecord(input)) {
    complaints.add('', `must be an object such as { from: "2026-01-01T00:00:00Z", to: "2026-02-01T00:00:00Z" }`)
    return null
  }
  for (const name of Object.keys(input)) {
    if ((FIELDS as readonly string[]).includes(name) || input[name] === undefined) continue
    complaints.add(join('', name), `there is no such option; there is ${FIELDS.join(', ')}`, nearestName(name, FIELDS))
  }
  const from = readEnd(complaints, 'from', input.from)
  const to = readEnd(complaints, 'to', input.to)
  if (from !== undefined && to !== undefined && to <= from) {
    complaints.add('to', `must be after from: ${shown(input.to)} is not, so there is nothing in between`)
  }
  const { concurrency = 1, confirmCount } = input
  readInteger(complaints, 'concurrency', concurrency, 1, MAX_CONCURRENCY)
  if (confirmCount !== undefined) readInteger(complaints, 'confirmCount', confirmCount, 1, MAX_TIMES)
  if (from === undefined || to === undefined) return null
  return { from, to, concurrency: concurrency as number, confirmCount: (confirmCount ?? null) as number | null }
}

function readEnd(complaints: Complaints, path: 'from' | 'to', value: unknown): Instant | undefined {
  if (value === undefined)
    return complaints.add(path, 'must be given, as a Date or a text such as "2026-01-31T09:00:00Z"')
  const instant = complaints.read(path, () => parseInstant(value))
  return instant === undefined ? undefined : Math.max(EARLIEST, instant)
}

export const refuse = (path: string, message: string) => refusal('invalid_argument', path, message)
