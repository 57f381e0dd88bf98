import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read } from '../store/columns.ts'

/**
 * The timer row is a job's lock: a transaction that changes what promotion would do, or inserts a run of a job that has a
 * timer, raises `version`. Promotion is a compare-and-set on it.
 */
export const TIMER = {
  shard: column<number>('t.shard'),
  jobId: column<string>('t.job_id'),
  version: column<number>('t.version'),
  dueAt: column<Instant>('t.due_at'),
  /** Null while the job has not been planned yet: it was created by SQL and no planner has read it so far. */
  nominalAt: column<Instant | null>('t.nominal_at'),
  /** Null for a one-off. */
  scheduleId: column<string | null>('t.schedule_id'),
  jobVersion: column<number>('t.job_version'),
  tenantId: column<number>('t.tenant_id'),
  queueId: column<number>('t.queue_id'),
  timeoutMs: column<number>('t.timeout_ms'),
  jitterMs: column<number>('t.jitter_ms'),
  remainingRuns: column<number | null>('t.remaining_runs'),
  priority: column<number>('t.priority'),
  overlap: column<number>('t.overlap'),
  delivery: column<number>('t.delivery'),
  /** Among runs of one queue of a tenant, whom this one is fair to the others by. */
  fairnessKey: column<number | null>('t.fairness_key'),
}
export const TIMERS = columns(TIMER)
export type Timer = Read<typeof TIMERS>

/** Names what a promotion compared and set: a job's timer as it was at one version, for one nominal time. */
export const timerKey = ({ jobId, version, nominalAt }: Pick<Timer, 'jobId' | 'version' | 'nominalAt'>): string =>
  `${jobId}.${version}.${nominalAt}`

/** The same as text of a statement. */
export const timerKeyInSql = (jobId: string, version: string, nominalAt: string): string =>
  `${jobId} || '.' || ${version} || '.' || (extract(epoch from ${nominalAt}) * 1000)::bigint`
