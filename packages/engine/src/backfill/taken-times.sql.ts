import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * One snapshot over every place where a run leaves a trace: alive, dead, ended on whatever day, or
 * made by a backfill longer ago than history is kept. A run does not end before its nominal time, so older days are left out.
 */
const TAKEN = statement(
  'taken_nominal_times',
  `select r.nominal_at from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and r.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)
   union
   select d.nominal_at from belfry.dead_letters d
   where d.shard = $1 and d.job_id = $2 and d.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)
   union
   select o.nominal_at from belfry.backfill_runs o
   where o.shard = $1 and o.job_id = $2 and o.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)
   union
   select a.nominal_at from belfry.attempts a
   where a.shard = $1 and a.job_id = $2 and a.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)
     and a.finished_at >= to_timestamp($5::float8 / 1000)`,
)

/** Of times that had no trace and are past for the schedule: what another backfill made of them meanwhile. */
const BACKFILLED = statement(
  'backfilled_nominal_times',
  `select r.nominal_at from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and r.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)
   union
   select o.nominal_at from belfry.backfill_runs o
   where o.shard = $1 and o.job_id = $2 and o.nominal_at between to_timestamp($3::float8 / 1000) and to_timestamp($4::float8 / 1000)`,
)

/** The nominal times among these, oldest first, that have or had a run. */
export async function takenTimes(
  db: Queryable,
  job: { shard: number; jobId: string },
  times: readonly Instant[],
): Promise<Set<Instant>> {
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined) return new Set()
  return new Set((await db.query<[Instant]>(TAKEN, [job.shard, job.jobId, first, last, first - DAY_MS])).flat())
}

/** Those among times without a trace that have got a run since. */
export async function backfilledTimes(
  db: Queryable,
  job: { shard: number; jobId: string },
  times: readonly Instant[],
): Promise<Instant[]> {
  return (await db.query<[Instant]>(BACKFILLED, [job.shard, job.jobId, times[0], times.at(-1)])).flat()
}
