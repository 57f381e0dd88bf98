import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Piece } from '../runtime/rounds.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Jobs with a blocked run of which nothing else is alive. From job to job along `runs_blocked`, however many runs of one wait, and
 * no further than the last that may be visited: that one is answered too, as the place to go on from.
 */
const SWEEP = statement(
  'sweep_blocked_runs',
  `select v.job_id, v.n = $3::int, i.is_idle
   from unnest($1::smallint[], $2::uuid[]) as s (shard, after)
   cross join lateral (
     with recursive job as (
       (select r.job_id, 1 as n from belfry.runs r where r.shard = s.shard and r.state = ${RUN_STATE.blocked} and r.job_id > s.after
        order by r.job_id limit 1)
       union all
       select further.job_id, job.n + 1 from job cross join lateral (
         select r.job_id from belfry.runs r where r.shard = s.shard and r.state = ${RUN_STATE.blocked} and r.job_id > job.job_id
         order by r.job_id limit 1) further
       where job.n < $3::int
     )
     select job.job_id, job.n from job) v
   cross join lateral (
     select not exists (
       select from belfry.runs r where r.shard = s.shard and r.job_id = v.job_id and r.state <> ${RUN_STATE.blocked} offset 0) as is_idle
     offset 0) i
   where i.is_idle or v.n = $3::int`,
)

/** Tells `look` of the jobs; answers the last one of each shard of which not all were visited. */
export async function sweepBlocked(
  db: Queryable,
  { shards, after, perShard }: Piece,
  look: (jobId: string) => void,
): Promise<Map<number, string>> {
  const rows = await db.query<[string, boolean, boolean]>(SWEEP, [shards, after, perShard])
  for (const [jobId, , isIdle] of rows) if (isIdle) look(jobId)
  return new Map(rows.filter(([, isLast]) => isLast).map(([jobId]) => [shardOfJob(jobId), jobId]))
}
