import { BelfryError, refusal } from '../errors.ts'
import { Complaints, readText } from '../input/read-fields.ts'
import type { Instant } from '../runtime/clock.ts'
import { parseInstant } from '../schedule/instant.ts'

/** An instant as callers write it. */
export type When = Date | string

const MAX_TEXT = 1_024
/** What PostgreSQL can hold on the one side and a Date on the other. */
const EARLIEST: Instant = Date.UTC(-4_000, 0)

/** Filters are texts of callers: what the database could not even compare is refused here. */
export function readTextFilter(path: string, value: string | undefined): string | null {
  if (value === undefined) return null
  const complaints = new Complaints()
  readText(complaints, path, value, MAX_TEXT)
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return value
}

/** One end of a range; without it, `open`. */
function readInstantFilter(path: string, value: When | undefined, open: Instant): Instant {
  if (value === undefined) return open
  try {
    return Math.max(EARLIEST, parseInstant(value))
  } catch (error) {
    if (!(error instanceof BelfryError)) throw error
    const { suggestion } = error.complaints[0] ?? {}
    const complaint = { path, message: error.message, ...(suggestion === undefined ? {} : { suggestion }) }
    throw new BelfryError('invalid_argument', `${path}: ${error.message}`, { complaints: [complaint] })
  }
}

/** Half-open: what is at `to` is not in it. */
export interface Range {
  from: Instant
  to: Instant
}

export function readRange(
  { from, to }: { from?: When | undefined; to?: When | undefined },
  paths = RANGE_PATHS,
): Range {
  return {
    from: readInstantFilter(paths.from, from, Number.NEGATIVE_INFINITY),
    to: readInstantFilter(paths.to, to, Number.POSITIVE_INFINITY),
  }
}

const RANGE_PATHS = { from: 'from', to: 'to' }

/** `team` asks for any label of that name, `team=ops` for that one. */
export function readLabelFilter(value: string | undefined): { key: string | null; value: string | null } {
  const text = readTextFilter('label', value)
  if (text === null) return { key: null, value: null }
  const at = text.indexOf('=')
  if (at === 0) {
    const message = 'must be the name of a label, or name=value'
    throw refusal('invalid_argument', 'label', message, `label ${message}`)
  }
  return at < 0 ? { key: text, value: null } : { key: text.slice(0, at), value: text.slice(at + 1) }
}
