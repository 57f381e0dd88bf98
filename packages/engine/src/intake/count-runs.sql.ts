import { createdAtOf } from '../job/ids.ts'
import { CAUSE } from '../job/states.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const OF_SCHEDULE = `(${CAUSE.schedule}, ${CAUSE.catch_up})`

/** The job is locked meanwhile: what takes longer than a second or two is not counted out. */
export const MAX_COUNTED_RUNS = 1_000_000

/**
 * A run that was opened again has ended more than once, or has ended and is alive, so nominal times are counted. Newest
 * first, in the order of the index and one behind the other, so that no more of history is read than is counted.
 */
const COUNT = statement(
  'count_scheduled_runs',
  `select least(count(distinct n.nominal_at), $4)::int from (
     (select r.nominal_at from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.cause in ${OF_SCHEDULE} limit $4)
     union all
     (select distinct on (a.nominal_at) a.nominal_at from belfry.attempts a
      where a.shard = $1 and a.job_id = $2 and a.finished_at >= to_timestamp($3::float8 / 1000) and a.final and a.cause in ${OF_SCHEDULE}
      order by a.nominal_at desc limit $4)) n`,
)

/** How many runs the schedule has made, as far as history reaches; counting stops at `limit`. */
export async function countScheduledRuns(
  tx: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  limit: number,
): Promise<number> {
  const since = createdAtOf(jobId) - DAY_MS
  const [row] = await tx.query<[number]>(COUNT, [shard, jobId, since, Math.min(limit, MAX_COUNTED_RUNS)])
  return row?.[0] ?? 0
}
