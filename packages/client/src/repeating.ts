import { BelfryApiError, BelfryConnectionError } from './errors.ts'
import type { Runtime } from './runtime/runtime.ts'

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
/** Whoever is asked to wait longer than this is told so instead. */
const LONGEST_WISH_MS = 60_000

/** Answers that say nothing about the request itself: it did not arrive, or there is nobody to perform it just now. */
const PASSING = [408, 502, 503, 504]

/**
 * Whether the same call may be sent again. One that is not harmless to repeat is only repeated when it was certainly not
 * performed: it was never sent, or it was turned away before anything was done.
 */
export function mayRepeat(error: unknown, isRepeatable: boolean): boolean {
  if (error instanceof BelfryConnectionError) return isRepeatable || !error.wasSent
  if (!(error instanceof BelfryApiError)) return false
  const { status, code, retryAfterMs } = error
  if (retryAfterMs !== null && retryAfterMs > LONGEST_WISH_MS) return false
  // A used up quota is a 429, too, but then waiting does not help, and the server does not ask for it.
  if (status === 429) return retryAfterMs !== null
  return isRepeatable && (PASSING.includes(status) || code === 'in_progress')
}

/** Full jitter: clients that failed together do not come back together. What the server asked for comes on top. */
export function backoffMs(error: unknown, tries: number, runtime: Runtime): number {
  const ceiling = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1))
  const wished = error instanceof BelfryApiError ? (error.retryAfterMs ?? 0) : 0
  return wished + Math.round(ceiling * runtime.chance())
}
