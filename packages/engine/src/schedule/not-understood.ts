import { BelfryError } from '../errors.ts'

/** For one value that cannot be read. Whoever reads a whole job puts the path in front of the message. */
export function notUnderstood(message: string, suggestion?: string): BelfryError {
  const complaint = suggestion === undefined ? { path: '', message } : { path: '', message, suggestion }
  return new BelfryError('invalid_argument', message, { complaints: [complaint] })
}

/** What a reader makes of a value; undefined if it throws, whatever that is. */
export function readOrNothing<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

const SHOWN_LENGTH = 60

/** A value as it stands in a message: quoted, on one line, and never long. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value)
  }
  if (value === null || value === undefined || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') return Object.is(value, -0) ? '0' : String(value)
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
