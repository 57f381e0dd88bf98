import { JOB_STATUS } from '../intake/job-row.sql.ts'
import { DEFAULT_OVERLAP } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import { OVERLAP } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { BACKFILL_STATUS } from './backfill.ts'

/** Backfills of one job that go on beside each other; later ones wait for them. */
export const MAX_OPEN = 10

/**
 * Something can be done for an open backfill: a run of it has ended, nothing is left, its job is gone, or there is room for
 * another run; unless runs of the job may overlap, that is while none is alive. So one whose runs wait for a worker costs a
 * look a second, and no transaction. The offsets keep look-ups look-ups, whatever the tables held when this was planned.
 */
const LOOK = statement(
  'look_at_backfilled_jobs',
  `select u.job_id, coalesce(bool_or(n.alive < n.open or case
       when not b.is_running then n.open = 0
       when j.status is null then true
       when b.position_at >= b.to_nominal then n.open = 0
       when b.position_at >= j.undecided_from then false
       when j.may_overlap then n.open < b.concurrency
       else not j.is_alive end), false)
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select b.shard, b.id, b.concurrency, b.status = ${BACKFILL_STATUS.running} as is_running, b.position_at, b.to_nominal
     from belfry.backfills b where b.shard = u.shard and b.job_id = u.job_id and b.ended_at is null order by b.id limit ${MAX_OPEN}) b
   cross join lateral (
     select count(*) as open, count(*) filter (
       where exists (select from belfry.runs r where r.shard = o.shard and r.job_id = o.job_id and r.nominal_at = o.nominal_at offset 0)) as alive
     from belfry.backfill_runs o where o.shard = b.shard and o.backfill_id = b.id and o.outcome is null) n
   left join lateral (
     select j.status, t.nominal_at as undecided_from, coalesce(t.overlap = ${OVERLAP.allow}, coalesce(j.definition ->> 'overlap', '${DEFAULT_OVERLAP}') = 'allow') as may_overlap,
       exists (select from belfry.runs r where r.shard = u.shard and r.job_id = u.job_id offset 0) as is_alive
     from belfry.jobs j left join belfry.timers t on t.shard = u.shard and t.job_id = u.job_id
     where j.shard = u.shard and j.id = u.job_id and (t.job_id is not null or j.status = ${JOB_STATUS.completed}) limit 1) j on true
   group by u.job_id`,
)

export interface BackfilledJob {
  jobId: string
  hasWork: boolean
}

/** Those of the jobs that have open backfills, and whether something can be done for them. */
export async function lookAtJobs(db: Queryable, jobIds: readonly string[]): Promise<BackfilledJob[]> {
  if (jobIds.length === 0) return []
  const rows = await db.query<[string, boolean]>(LOOK, [jobIds.map(shardOfJob), jobIds])
  return rows.map(([jobId, hasWork]) => ({ jobId, hasWork }))
}
