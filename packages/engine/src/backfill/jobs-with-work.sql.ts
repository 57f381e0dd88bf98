import { shardOfJob } from '../job/ids.ts'
import { ids, numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { BACKFILL_STATUS } from './backfill.ts'

/**
 * Something can be done for an open backfill: a run of it has ended, it has room for another, its job is gone, or nothing is
 * left. So one whose runs wait for a worker costs a look a second, and no transaction. The offsets keep look-ups look-ups,
 * whatever the tables held when this was planned.
 */
const WITH_WORK = statement(
  'jobs_with_backfill_work',
  `select distinct u.job_id
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
     select b.shard, b.id, b.concurrency, b.status = ${BACKFILL_STATUS.running} as is_running, b.position_at < b.to_nominal as has_more
     from belfry.backfills b where /*shards b*/ b.shard = u.shard and b.job_id = u.job_id and b.ended_at is null offset 0) b
   cross join lateral (
     select count(*) as open, count(*) filter (
       where exists (select from belfry.runs r where r.shard = o.shard and r.job_id = o.job_id and r.nominal_at = o.nominal_at offset 0)) as alive
     from belfry.backfill_runs o where /*shards o*/ o.shard = b.shard and o.backfill_id = b.id and o.outcome is null) n
   where n.alive < n.open or n.open = 0 or (b.is_running and b.has_more and n.open < b.concurrency)
     or (b.is_running and not exists (select from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id offset 0))`,
)

/** Those of the jobs for whose backfills something can be done. */
export async function jobsWithWork(db: Queryable, jobIds: readonly string[]): Promise<string[]> {
  if (jobIds.length === 0) return []
  return (await db.query<[string]>(WITH_WORK, [numbers(jobIds.map(shardOfJob)), ids(jobIds)])).flat()
}
