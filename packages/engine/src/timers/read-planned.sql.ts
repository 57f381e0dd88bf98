import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const READ = statement(
  'read_planned_timers',
  `select t.job_id, t.schedule_id, t.nominal_at, t.decided_until
   from unnest($1::smallint[], $2::uuid[]) as s (shard, after_id) cross join lateral (
     select * from belfry.timers t where t.shard = s.shard and t.job_id > s.after_id order by t.job_id limit $3) t`,
)

/** A job's next time, and what it follows from. Null schedules are one-offs', null times those of jobs that nobody has planned. */
export interface PlannedTimer {
  shard: number
  jobId: string
  scheduleId: string | null
  nominalAt: Instant | null
  decidedUntil: Instant | null
}

/** One page of each shard's timers, in the order of their jobs. */
export async function readPlannedTimers(
  db: Queryable,
  shards: readonly { shard: number; after: string }[],
  limitPerShard: number,
): Promise<PlannedTimer[]> {
  const rows = await db.query<[string, string | null, Instant | null, Instant | null]>(READ, [
    shards.map(({ shard }) => shard),
    shards.map(({ after }) => after),
    limitPerShard,
  ])
  return rows.map(([jobId, scheduleId, nominalAt, decidedUntil]) => {
    return { shard: shardOfJob(jobId), jobId, scheduleId, nominalAt, decidedUntil }
  })
}
