import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK, NOW } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays, IS_OF_FENCE } from './heartbeat.sql.ts'
import { type Fence, runKey } from './lease.ts'

/** No index has the column, so the row stays where it is. A row that another transaction holds is passed over. */
const BEGIN = statement(
  'begin_attempts',
  `with ${CLOCK}, u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder
   ), held as (
     select r.ctid from u cross join lateral (
       select r.ctid from belfry.runs r where ${IS_OF_FENCE} limit 1 for update skip locked) r
   )
   update belfry.runs r set begun_at = coalesce(r.begun_at, to_timestamp(${NOW} / 1000)) from held h where r.ctid = h.ctid
   returning r.job_id, r.nominal_at`,
)

/** Says that the work of these attempts begins; answers the keys of their runs. Fences are unique and in lock order. */
export async function beginAttempts(db: Queryable, fences: readonly Fence[]): Promise<Set<string>> {
  const rows = await db.query<[string, Instant]>(BEGIN, fenceArrays(fences))
  return new Set(rows.map(([jobId, nominalAt]) => runKey({ jobId, nominalAt })))
}
