import type { Instant } from '../runtime/clock.ts'

/** So many in a period, evenly, and up to `burst` of them at once. */
export interface Rate {
  limit: number
  periodMs: number
  burst: number
}

export interface RateVerdict {
  /** How many of those that were wanted may go now. */
  allowed: number
  /** What is to be remembered if so many go: when the next one would come if all came evenly, in microseconds since 1970. */
  rateAt: number
  /** When one more may go. */
  nextAt: Instant
}

/** For so long a burst may use up the rate: beyond it nobody means what he says. */
export const LONGEST_BURST_MS = 366 * 86_400_000

/** The largest burst that a rate may have. */
export const mostBurst = ({ limit, periodMs }: { limit: number; periodMs: number }): number =>
  Math.floor((LONGEST_BURST_MS * limit) / periodMs)

/** What is remembered stays a time that PostgreSQL and a calendar can hold, whatever rate it is of: the year 9999. */
export const LAST_RATE_AT = 253_402_300_799_000_000

/** What is remembered is rounded up to a microsecond, so that much may be missing. */
const ROUNDING = 1

/**
 * The generic cell rate algorithm: one number per limit tells how far ahead of an even pace its runs are. Whoever asks for
 * more than is allowed changes nothing by that; only what goes is remembered, so ask again with that number before writing.
 */
export function gcra(rateAt: number, { limit, periodMs, burst }: Rate, now: Instant, wanted: number): RateVerdict {
  const nowMicros = now * 1_000
  const interval = (periodMs * 1_000) / limit
  const from = Math.max(rateAt, nowMicros)
  const room = Math.floor((nowMicros + burst * interval - from + ROUNDING) / interval)
  const allowed = Math.max(0, Math.min(wanted, room))
  const next = allowed === 0 ? rateAt : Math.min(LAST_RATE_AT, Math.ceil(from + allowed * interval))
  const nextAt = (Math.max(next, nowMicros) + interval - burst * interval - ROUNDING) / 1_000
  return { allowed, rateAt: next, nextAt: Math.max(now, Math.ceil(nextAt)) }
}
