import type { Instant } from '../runtime/clock.ts'

/**
 * A backfill makes runs of nominal times that have passed, in [from, to), a few at a time. It owns `backfills` and
 * `backfill_runs`. Whoever advances one holds the timer of its job, which is the job's lock, and raises its version; the
 * position is written in the same transaction as the runs, so that a crash neither doubles nor loses one. It never writes
 * `decided_until`: doubles are found in what there is of runs, attempts and dead letters.
 */
export const BACKFILL_STATUS = { running: 0, completed: 1, canceled: 2 } as const

export type BackfillStatus = keyof typeof BACKFILL_STATUS

export interface Backfill {
  shard: number
  id: string
  jobId: string
  tenantId: number
  status: number
  /** Half-open. */
  from: Instant
  to: Instant
  /** Times before it have become runs, or were left out. */
  position: Instant
  /** Of the job as it was when somebody asked for the backfill. */
  scheduleId: string
  concurrency: number
  createdAt: Instant
  createdBy: string
  /** When the last of its runs had ended. */
  endedAt: Instant | null
  counts: BackfillCounts
}

export interface BackfillCounts {
  /** Nominal times in its range. */
  total: number
  /** Those that became runs. */
  created: number
  /** Those that had a run already. */
  leftOut: number
  succeeded: number
  failed: number
  canceled: number
}

export interface BackfillView {
  backfillId: string
  jobId: string
  status: BackfillStatus
  from: Date
  to: Date
  position: Date
  concurrency: number
  /** `running` are those of its runs that have not ended, whatever they wait for. */
  counts: BackfillCounts & { running: number }
  createdBy: string
  createdAt: Date
  endedAt: Date | null
}

const STATUSES: readonly BackfillStatus[] = ['running', 'completed', 'canceled']

export function backfillView(backfill: Backfill): BackfillView {
  const { id, jobId, status, from, to, position, concurrency, counts, createdBy, createdAt, endedAt } = backfill
  const running = counts.created - counts.succeeded - counts.failed - counts.canceled
  return {
    backfillId: id,
    jobId,
    status: STATUSES[status] ?? 'running',
    from: new Date(from),
    to: new Date(to),
    position: new Date(position),
    concurrency,
    counts: { ...counts, running },
    createdBy,
    createdAt: new Date(createdAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
  }
}
