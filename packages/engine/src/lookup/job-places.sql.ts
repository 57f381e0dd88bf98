import { ownEnd } from '../dependencies/own-run.ts'
import { CAUSE, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read } from '../store/columns.ts'
import { ATTEMPT_OF_END } from './run-columns.sql.ts'

/**
 * Where a job can be, as joins that every look-up of jobs shares: each by primary key, except its
 * last run, which comes from `attempts_by_run` of the days since `since`. The caller says how shard, id and `since` (a timestamptz) are
 * written.
 *
 * The last run is the one with the latest nominal time; where that is a triggered run of a one-off, the end of the job is looked up
 * apart. Within a run it is the end that came last.
 */
export const jobPlaces = (shard: string, id: string, since: string): string => `
   left join lateral (
     select j.id, j.tenant_id, j.version, j.status, j.name, j.updated_at, j.paused_at, j.pause_reason, j.paused_by, j.definition
     from belfry.jobs j where j.shard = ${shard} and j.id = ${id} limit 1) j on true
   left join lateral (
     select s.job_id, s.tenant_id, s.version, s.name, s.updated_at, s.paused_at, s.pause_reason, s.paused_by, s.definition
     from belfry.specs s where s.shard = ${shard} and s.job_id = ${id} limit 1) s on true
   left join lateral (
     select t.nominal_at, t.due_at, t.schedule_id, t.remaining_runs from belfry.timers t where t.shard = ${shard} and t.job_id = ${id} limit 1) t on true
   left join lateral (
     select r.nominal_at, r.due_at, r.state from belfry.runs r where r.shard = ${shard} and r.job_id = ${id}
     order by r.nominal_at desc limit 1) r on true
   left join lateral (
     select d.nominal_at, d.failure_class, d.error, d.died_at, d.attempt from belfry.dead_letters d where d.shard = ${shard} and d.job_id = ${id}
     order by d.nominal_at desc limit 1) d on true
   left join lateral (
     select a.nominal_at, a.outcome, a.failure_class, a.error, a.finished_at, ${ATTEMPT_OF_END} as attempt, a.cause from belfry.attempts a
     where a.shard = ${shard} and a.job_id = ${id} and a.finished_at >= ${since} and a.final
     order by a.nominal_at desc, a.finished_at desc limit 1) a on true
   left join lateral (
     select e.outcome from (${ownEnd('a.outcome', { shard, jobId: id, since })}) e
     where j.id is null and a.cause = ${CAUSE.trigger}) own on true`

export const JOB_STATUSES = ['active', 'paused', 'completed', 'canceled', 'succeeded', 'failed'] as const

/** A one-off is active or paused, then succeeded, failed or canceled; one whose history has expired is just completed. */
export type JobViewStatus = (typeof JOB_STATUSES)[number]

const ENDED_AS = 'coalesce(own.outcome, a.outcome)'

/** Of a one-off that is over, its own run decides; a dead letter stands for one whose history has expired. */
export const JOB_STATUS = `case
     when j.id is not null then case j.status when 1 then 'paused' when 2 then 'completed' when 3 then 'canceled' else 'active' end
     when t.due_at = 'infinity' and s.paused_at is not null then 'paused'
     when t.due_at is not null or r.state is not null then 'active'
     when ${ENDED_AS} = ${OUTCOME.succeeded} then 'succeeded'
     when ${ENDED_AS} = ${OUTCOME.canceled} then 'canceled'
     when a.outcome is not null or d.nominal_at is not null then 'failed'
     else 'completed' end`

/** As `nextRunAtOf` says it. */
export const NEXT_RUN_AT = `case
     when t.due_at is not null then case when t.due_at < 'infinity' then t.nominal_at end
     when j.id is null and r.state not in (${RUN_STATE.leased}, ${RUN_STATE.dependent}) then r.due_at end`

export const JOB = columns({
  jobId: column<string>('coalesce(j.id, s.job_id) as id'),
  tenantId: column<number>('coalesce(j.tenant_id, s.tenant_id)'),
  tenant: column<string | null>(
    '(select n.name from belfry.tenants n where n.id = coalesce(j.tenant_id, s.tenant_id))',
  ),
  status: column<JobViewStatus>(JOB_STATUS),
  isOneOff: column<boolean>('j.id is null'),
  name: column<string | null>('coalesce(j.name, s.name)'),
  version: column<number>('coalesce(j.version, s.version)'),
  updatedAt: column<Instant>('coalesce(j.updated_at, s.updated_at)'),
  pausedAt: column<Instant | null>('coalesce(j.paused_at, s.paused_at)'),
  pausedReason: column<string | null>('coalesce(j.pause_reason, s.pause_reason)'),
  pausedBy: column<string | null>('coalesce(j.paused_by, s.paused_by)'),
  /** JSON. */
  definition: column<string>('case when j.id is not null then j.definition else s.definition end'),
  timerNominalAt: column<Instant | null>('t.nominal_at'),
  timerDueAt: column<Instant | null>('t.due_at'),
  /** Of a recurring job that has a future: the schedule it goes by, and how many runs are left of `maxRuns`. */
  scheduleId: column<string | null>('t.schedule_id'),
  remainingRuns: column<number | null>('t.remaining_runs'),
  runNominalAt: column<Instant | null>('r.nominal_at'),
  runDueAt: column<Instant | null>('r.due_at'),
  runState: column<number | null>('r.state'),
  lastNominalAt: column<Instant | null>('coalesce(a.nominal_at, d.nominal_at)'),
  lastOutcome: column<number | null>(
    `coalesce(a.outcome, case when d.nominal_at is not null then ${OUTCOME.failed} end)`,
  ),
  lastFailureClass: column<number | null>(
    'case when a.nominal_at is not null then a.failure_class else d.failure_class end',
  ),
  lastError: column<string | null>('case when a.nominal_at is not null then a.error else d.error end'),
  lastFinishedAt: column<Instant | null>('coalesce(a.finished_at, d.died_at)'),
  lastAttempt: column<number | null>('coalesce(a.attempt, d.attempt)'),
})
export type JobRow = Read<typeof JOB>
