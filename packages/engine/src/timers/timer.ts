import type { Instant } from '../runtime/clock.ts'

/**
 * The timer row is a job's lock: whatever changes what promotion would do, and whoever inserts a run of a job that has a
 * timer, raises `version` in its transaction. Promotion is a compare-and-set on it.
 */
export interface Timer {
  shard: number
  jobId: string
  version: number
  dueAt: Instant
  /** Null while the job has not been planned yet: it was created by SQL and nobody has understood it so far. */
  nominalAt: Instant | null
  /** The last scheduled nominal time that became a run or a skip. Only rises. */
  decidedUntil: Instant | null
  /** Null for a one-off. */
  scheduleId: string | null
  jobVersion: number
  tenantId: number
  queueId: number
  timeoutMs: number
  jitterMs: number
  remainingRuns: number | null
  priority: number
  overlap: number
  delivery: number
}

export const TIMER_COLUMNS = `t.shard, t.job_id, t.version, t.due_at, t.nominal_at, t.decided_until, t.schedule_id, t.job_version,
  t.tenant_id, t.queue_id, t.timeout_ms, t.jitter_ms, t.remaining_runs, t.priority, t.overlap, t.delivery`

export type TimerRow = readonly [
  number,
  string,
  number,
  Instant,
  Instant | null,
  Instant | null,
  string | null,
  number,
  number,
  number,
  number,
  number,
  number | null,
  number,
  number,
  number,
]

export function timerOf(row: TimerRow): Timer {
  return {
    shard: row[0],
    jobId: row[1],
    version: row[2],
    dueAt: row[3],
    nominalAt: row[4],
    decidedUntil: row[5],
    scheduleId: row[6],
    jobVersion: row[7],
    tenantId: row[8],
    queueId: row[9],
    timeoutMs: row[10],
    jitterMs: row[11],
    remainingRuns: row[12],
    priority: row[13],
    overlap: row[14],
    delivery: row[15],
  }
}
