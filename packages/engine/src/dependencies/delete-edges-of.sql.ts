import { CHILD_KIND } from '../job/after.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { deleteEdgesOfChild } from './edges.sql.ts'

const DELETE_OF_PARENT = statement(
  'delete_edges_of_parent',
  `with gone as (delete from belfry.edges e where e.shard = $1 and e.parent = $2 returning e.child_shard, e.child, e.kind)
   select g.child from gone g where g.kind = ${CHILD_KIND.chain} order by g.child_shard, g.child`,
)
/** The timer is the job's lock: whoever is just giving it a run does so before. */
const HOLD = statement(
  'hold_followers',
  `select u.job_id from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id limit 1 for update) t`,
)
const END = statement(
  'end_followers',
  `with u as (
     select u.shard, u.job_id from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
     where not exists (select from belfry.edges e where e.child = u.job_id and e.tenant_id > 0 offset 0)
   ), timers as (
     delete from belfry.timers t where t.ctid = any (array(select t.ctid from u cross join lateral (
       select t.ctid from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id limit 1) t))
   )
   update belfry.jobs j set status = 2, paused_at = null, pause_reason = null, paused_by = null, updated_at = to_timestamp($3::float8 / 1000)
   where j.ctid = any (array(select j.ctid from u cross join lateral (
     select j.ctid from belfry.jobs j where j.shard = u.shard and j.id = u.job_id and j.status < 2 limit 1) j))`,
)

/**
 * The job is gone. A one-off that others wait for has ended, which they will be told. Nobody follows a recurring one any more; jobs that
 * followed it and nothing else have no future, like those whose schedule is used up. Their runs that are alive go on.
 */
export async function deleteEdgesOf(
  tx: Queryable,
  { jobId, oneOff }: { jobId: string; oneOff: boolean },
  now: Instant,
): Promise<void> {
  await deleteEdgesOfChild(tx, jobId)
  if (oneOff) return
  const followers = (await tx.query<[string]>(DELETE_OF_PARENT, [shardOfJob(jobId), jobId])).flat()
  if (followers.length === 0) return
  const values = [followers.map(shardOfJob), followers]
  await tx.query(HOLD, values)
  await tx.execute(END, [...values, now])
}
