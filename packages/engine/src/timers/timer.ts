import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { columns, type RowOf } from '../store/columns.ts'

/**
 * The timer row is a job's lock: a transaction that changes what promotion would do, or inserts a run of a job that has a
 * timer, raises `version`. Promotion is a compare-and-set on it.
 */
export interface Timer {
  shard: number
  jobId: string
  version: number
  dueAt: Instant
  /** Null while the job has not been planned yet: it was created by SQL and no planner has read it so far. */
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

export const TIMER_TEXTS = {
  jobId: 't.job_id',
  version: 't.version',
  dueAt: 't.due_at',
  nominalAt: 't.nominal_at',
  scheduleId: 't.schedule_id',
  jobVersion: 't.job_version',
  tenantId: 't.tenant_id',
  queueId: 't.queue_id',
  timeoutMs: 't.timeout_ms',
  jitterMs: 't.jitter_ms',
  remainingRuns: 't.remaining_runs',
  priority: 't.priority',
  overlap: 't.overlap',
  delivery: 't.delivery',
  fairnessKey: 't.fairness_key',
}
export const TIMER = columns<Omit<Timer, 'shard'>>(TIMER_TEXTS)
export type TimerRow = RowOf<Omit<Timer, 'shard'>>

export function timerOf(row: TimerRow): Timer {
  const jobId = TIMER.get(row, 'jobId')
  return {
    shard: shardOfJob(jobId),
    jobId,
    version: TIMER.get(row, 'version'),
    dueAt: TIMER.get(row, 'dueAt'),
    nominalAt: TIMER.get(row, 'nominalAt'),
    scheduleId: TIMER.get(row, 'scheduleId'),
    jobVersion: TIMER.get(row, 'jobVersion'),
    tenantId: TIMER.get(row, 'tenantId'),
    queueId: TIMER.get(row, 'queueId'),
    timeoutMs: TIMER.get(row, 'timeoutMs'),
    jitterMs: TIMER.get(row, 'jitterMs'),
    remainingRuns: TIMER.get(row, 'remainingRuns'),
    priority: TIMER.get(row, 'priority'),
    overlap: TIMER.get(row, 'overlap'),
    delivery: TIMER.get(row, 'delivery'),
    fairnessKey: TIMER.get(row, 'fairnessKey'),
  }
}

/** Names what a promotion compared and set: a job's timer as it was at one version, for one nominal time. */
export const timerKey = ({ jobId, version, nominalAt }: Pick<Timer, 'jobId' | 'version' | 'nominalAt'>): string =>
  `${jobId}.${version}.${nominalAt}`

/** The same as text of a statement. */
export const timerKeyInSql = (jobId: string, version: string, nominalAt: string): string =>
  `${jobId} || '.' || ${version} || '.' || (extract(epoch from ${nominalAt}) * 1000)::bigint`
