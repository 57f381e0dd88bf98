import { BelfryError } from '../errors.ts'

/**
 * What an error of the database means for the one who sent something. There are three kinds, and this file alone tells them apart:
 *
 * - an *outage*: the database is away, or takes no writes for now. Nothing is wrong with what was sent: it waits, and is sent again.
 * - *contention*: another transaction was in the way. The same is sent again at once.
 * - a *fault*, which is everything else: what was sent is refused, and would be again.
 */

/** Connections that failed, that an operator ended, or that the database ended because nothing was said for too long. */
const CONNECTION_LOST = /^(08|57P0[1-5]|25P0[34])/
const LOST_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ENOENT', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ...['EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'ENETDOWN'],
])
const LOST_WORDS =
  /Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|^timeout expired$|Query read timeout/

/** A standby, or a database that was made read-only: a connection remembers it for as long as it lives. */
const READ_ONLY = '25006'
/** No disk, no connection left; its machine fails it. The statement was not done. */
const REFUSED = /^(25006|53100|53300|58)/
const LOCK_TIMEOUT = '55P03'
const CONTENTION = new Set(['40001', '40P01', LOCK_TIMEOUT])

const codeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : ''
}

/** The database cannot be reached, or went away in the middle: what the statement did is unknown. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof UnknownOutcome) return true
  if (!(error instanceof Error) || error instanceof BelfryError) return false
  const code = codeOf(error)
  return CONNECTION_LOST.test(code) || LOST_CODES.has(code) || LOST_WORDS.test(error.message)
}

/** The database is away or takes no writes: what was sent is sent again when it is back. */
export function isOutage(error: unknown): boolean {
  if (error instanceof BelfryError) return error.code === 'database_unavailable'
  return isConnectionLost(error) || REFUSED.test(codeOf(error))
}

/** Another transaction was in the way. */
export function isContention(error: unknown): boolean {
  if (error instanceof BelfryError) return error.code === 'in_progress'
  return CONTENTION.has(codeOf(error))
}

/** What was sent is refused, and would be again. */
export const isFault = (error: unknown): boolean => !isOutage(error) && !isContention(error)

/** Nothing can be expected of this connection any more: another one may lead to a database that takes writes. */
export const isConnectionSpent = (error: unknown): boolean => isConnectionLost(error) || codeOf(error) === READ_ONLY

/** A lock was not had within the transaction's own limit. */
export const isLockTimeout = (error: unknown): boolean => codeOf(error) === LOCK_TIMEOUT

/** The day that something is to be written to has not been made. */
export const isPartitionMissing = (error: unknown): boolean =>
  error instanceof Error && codeOf(error) === '23514' && /no partition of relation/.test(error.message)

/** A statement whose outcome is unknown, and the backend that may still be at work on it. */
export class UnknownOutcome extends BelfryError {
  readonly backendPid: number
  constructor(backendPid: number, cause: unknown) {
    super('database_unavailable', 'the connection to the database was lost; whether the call was done is unknown', {
      cause,
    })
    this.backendPid = backendPid
  }
}

export const TAKES_NO_WRITES = 'the database takes no writes: it is read-only'

/** What callers hear of a connection that could not be opened. */
export function asUnreachable(error: unknown): unknown {
  if (error instanceof BelfryError || !isOutage(error)) return error
  return new BelfryError('database_unavailable', 'the database cannot be reached', { cause: error })
}

/** What callers hear instead of the database's own words; faults are theirs to know. */
export function asToldToCallers(error: unknown, backendPid = 0): unknown {
  if (error instanceof BelfryError) return error
  if (isConnectionLost(error)) return new UnknownOutcome(backendPid, error)
  if (codeOf(error) === READ_ONLY) return new BelfryError('database_unavailable', TAKES_NO_WRITES, { cause: error })
  if (isOutage(error)) {
    return new BelfryError('database_unavailable', 'the database refuses this for now: nothing was done', {
      cause: error,
    })
  }
  if (isContention(error)) return inProgress(error)
  return error
}

export const inProgress = (cause?: unknown): BelfryError =>
  new BelfryError('in_progress', 'another transaction is changing the same thing: try again', { cause })
