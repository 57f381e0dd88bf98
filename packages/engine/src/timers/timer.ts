import { shardOfJob } from '../job/ids.ts'
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
  /** Among runs of one queue of a tenant, whom this one is fair to the others by. */
  fairnessKey: number | null
}

export const TIMER_COLUMNS = `t.job_id, t.version, t.due_at, t.nominal_at, t.schedule_id, t.job_version, t.tenant_id, t.queue_id, t.timeout_ms,
  t.jitter_ms, t.remaining_runs, t.priority, t.overlap, t.delivery, t.fairness_key`

export type TimerRow = readonly [
  jobId: string,
  version: number,
  dueAt: Instant,
  nominalAt: Instant | null,
  scheduleId: string | null,
  jobVersion: number,
  tenantId: number,
  queueId: number,
  timeoutMs: number,
  jitterMs: number,
  remainingRuns: number | null,
  priority: number,
  overlap: number,
  delivery: number,
  fairnessKey: number | null,
]

export function timerOf(row: TimerRow): Timer {
  return {
    shard: shardOfJob(row[0]),
    jobId: row[0],
    version: row[1],
    dueAt: row[2],
    nominalAt: row[3],
    scheduleId: row[4],
    jobVersion: row[5],
    tenantId: row[6],
    queueId: row[7],
    timeoutMs: row[8],
    jitterMs: row[9],
    remainingRuns: row[10],
    priority: row[11],
    overlap: row[12],
    delivery: row[13],
    fairnessKey: row[14],
  }
}

/** Names what a promotion compared and set: a job's timer as it was at one version, for one nominal time. */
export const timerKey = ({ jobId, version, nominalAt }: Pick<Timer, 'jobId' | 'version' | 'nominalAt'>): string =>
  `${jobId}.${version}.${nominalAt}`

/** The same as text of a statement. */
export const timerKeyInSql = (jobId: string, version: string, nominalAt: string): string =>
  `${jobId} || '.' || ${version} || '.' || (extract(epoch from ${nominalAt}) * 1000)::bigint`
