import { createdAtOf } from '../job/ids.ts'
import { CAUSE } from '../job/states.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const OF_SCHEDULE = `(${CAUSE.schedule}, ${CAUSE.catch_up})`

/** A run that was opened again has ended more than once, so nominal times are counted. */
const COUNT = statement(
  'count_scheduled_runs',
  `select count(*)::int from (
     select r.nominal_at from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.cause in ${OF_SCHEDULE}
     union
     select a.nominal_at from belfry.attempts a
     where a.shard = $1 and a.job_id = $2 and a.finished_at >= to_timestamp($3::float8 / 1000) and a.cause in ${OF_SCHEDULE}
     limit $4) n`,
)

/** How many runs the schedule has made, as far as history reaches; counting stops at `limit`. */
export async function countScheduledRuns(
  tx: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  limit: number,
): Promise<number> {
  const [row] = await tx.query<[number]>(COUNT, [shard, jobId, createdAtOf(jobId) - DAY_MS, limit])
  return row?.[0] ?? 0
}
