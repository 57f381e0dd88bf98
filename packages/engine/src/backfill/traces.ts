import { dayOf } from '../history/partition.ts'
import { createdAtOf } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'

/** From here on whatever ended is on record: history keeps whole days. */
export const keptSince = (now: Instant, historyDays: number): Instant => dayOf(now - historyDays * DAY_MS)

/**
 * Where a backfill of the job may begin: before it, nobody knows any more what has had a run. Minus infinity for a job that is
 * younger than what history keeps: all that it ever did is on record, and it did nothing before it was there.
 */
export function traceableSince(jobId: string, now: Instant, historyDays: number): Instant {
  const since = keptSince(now, historyDays)
  return createdAtOf(jobId) < since ? since : Number.NEGATIVE_INFINITY
}
