import { OUTCOME, RUN_STATE } from '../job/states.ts'
import { columns } from '../store/columns.ts'
import type { JobRow } from './job-view.ts'

/**
 * Where a job can be, as joins that every look-up of jobs shares: each by primary key, except its
 * last run, which comes from `attempts_by_run` of the days since `since`. The caller says how shard, id and `since` (a timestamptz) are
 * written.
 *
 * The last run is the one with the latest nominal time. Within a run it is the end that came last, not the one with the
 * highest number: a run that is canceled between two attempts ends with the number 0.
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
     select a.nominal_at, a.outcome, a.failure_class, a.error, a.finished_at, a.number from belfry.attempts a
     where a.shard = ${shard} and a.job_id = ${id} and a.finished_at >= ${since} and a.final
     order by a.nominal_at desc, a.finished_at desc limit 1) a on true`

/** Of a one-off that is over, its last run decides; a dead letter stands for one whose history has expired. */
export const JOB_STATUS = `case
     when j.id is not null then case j.status when 1 then 'paused' when 2 then 'completed' when 3 then 'canceled' else 'active' end
     when t.due_at = 'infinity' and s.paused_at is not null then 'paused'
     when t.due_at is not null or r.state is not null then 'active'
     when a.outcome = ${OUTCOME.succeeded} then 'succeeded'
     when a.outcome = ${OUTCOME.canceled} then 'canceled'
     when a.outcome is not null or d.nominal_at is not null then 'failed'
     else 'completed' end`

/** As `nextRunAtOf` says it. */
export const NEXT_RUN_AT = `case
     when t.due_at is not null then case when t.due_at < 'infinity' then t.nominal_at end
     when j.id is null and r.state not in (${RUN_STATE.leased}, ${RUN_STATE.dependent}) then r.due_at end`

export const JOB = columns<JobRow>({
  jobId: 'coalesce(j.id, s.job_id) as id',
  tenantId: 'coalesce(j.tenant_id, s.tenant_id)',
  tenant: '(select n.name from belfry.tenants n where n.id = coalesce(j.tenant_id, s.tenant_id))',
  status: JOB_STATUS,
  isOneOff: 'j.id is null',
  name: 'coalesce(j.name, s.name)',
  version: 'coalesce(j.version, s.version)',
  updatedAt: 'coalesce(j.updated_at, s.updated_at)',
  pausedAt: 'coalesce(j.paused_at, s.paused_at)',
  pausedReason: 'coalesce(j.pause_reason, s.pause_reason)',
  pausedBy: 'coalesce(j.paused_by, s.paused_by)',
  definition: 'case when j.id is not null then j.definition else s.definition end',
  timerNominalAt: 't.nominal_at',
  timerDueAt: 't.due_at',
  scheduleId: 't.schedule_id',
  remainingRuns: 't.remaining_runs',
  runNominalAt: 'r.nominal_at',
  runDueAt: 'r.due_at',
  runState: 'r.state',
  lastNominalAt: 'coalesce(a.nominal_at, d.nominal_at)',
  lastOutcome: `coalesce(a.outcome, case when d.nominal_at is not null then ${OUTCOME.failed} end)`,
  lastFailureClass: 'case when a.nominal_at is not null then a.failure_class else d.failure_class end',
  lastError: 'case when a.nominal_at is not null then a.error else d.error end',
  lastFinishedAt: 'coalesce(a.finished_at, d.died_at)',
  lastAttempt: 'coalesce(a.number, d.attempt)',
})
