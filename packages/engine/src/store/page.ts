import { BelfryError } from '../errors.ts'
import { nearestName } from '../job/nearest-name.ts'

/**
 * Lists are pages of a fixed order, and a cursor says where the last one ended. A filter may look at a bounded number of
 * rows per page; so a page can have fewer items than asked for, even none, and still have a next one.
 */
export interface Page<Item> {
  items: Item[]
  /** Null: that was all. */
  nextCursor: string | null
  /** How things stood when, if a replica answered; without it, they are of now. */
  asOf?: Date
}

export interface PageRequest {
  /** 1 to 1000, default 100. */
  limit?: number
  cursor?: string
}

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000

/** Rows that a filter may look at for one page. */
export const MAX_SCANNED = 10_000

export function limitOf({ limit = DEFAULT_LIMIT }: PageRequest): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit
  throw refusal('limit', `must be a whole number from 1 to ${MAX_LIMIT}`)
}

/** Throws unless the word is one of those a filter knows. */
export function checkWord(path: string, word: string | undefined, known: readonly string[]): void {
  if (word === undefined || known.includes(word)) return
  const nearest = nearestName(word, [...known])
  throw refusal(path, `must be one of ${known.join(', ')}`, nearest)
}

export const writeCursor = (parts: CursorParts): string => Buffer.from(parts.join('~')).toString('base64url')

/**
 * Of rows found in order, one more than the page has room for; the cursor says which item was the last. If all were found it says
 * where the scan stopped, unless that was the end (null).
 */
export function pageOf<Item>(
  found: readonly Item[],
  limit: number,
  cursorOf: (last: Item) => CursorParts,
  stoppedAt: CursorParts | null = null,
): Page<Item> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const parts = found.length > limit && last !== undefined ? cursorOf(last) : stoppedAt
  return { items, nextCursor: parts && writeCursor(parts) }
}

type CursorParts = readonly (string | number)[]

/** The parts as they were written, each in the form that its pattern says; null without a cursor. */
export function readCursor({ cursor }: PageRequest, patterns: readonly RegExp[]): string[] | null {
  if (cursor === undefined) return null
  const parts = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString().split('~') : []
  const isWhole = parts.length === patterns.length && patterns.every((pattern, i) => pattern.test(parts[i] as string))
  if (isWhole && writeCursor(parts) === cursor) return parts
  throw refusal('cursor', 'must be the nextCursor of the page before, unchanged')
}

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const INSTANT = /^-?\d{1,16}$/
/** Milliseconds that are a timestamp for PostgreSQL too. */
export const TIMESTAMP = /^-?\d{1,14}$/

/** What is after every id, and so stands before the first page. */
export const AFTER_ALL = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

function refusal(path: string, message: string, suggestion?: string): BelfryError {
  const complaint = suggestion === undefined ? { path, message } : { path, message, suggestion }
  return new BelfryError('invalid_argument', `${path} ${message}`, { complaints: [complaint] })
}
