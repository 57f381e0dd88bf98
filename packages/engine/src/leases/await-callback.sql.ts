import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays, IS_OF_FENCE } from './heartbeat.sql.ts'
import { type Lease, runKey } from './lease.ts'

/** The status of a target that reports the end of the attempt later. */
export const ACCEPTED = 202

/** The lease lasts until the attempt's time is up, and the row says why no process renews it. */
const AWAIT = statement(
  'await_callbacks',
  `with u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder, unnest($6::float8[]) as begun_at, unnest($7::float8[]) as until
   ), held as (
     select r.ctid, u.begun_at, u.until from u cross join lateral (
       select r.ctid from belfry.runs r where ${IS_OF_FENCE} limit 1 for update skip locked) r
   )
   update belfry.runs r set status_code = ${ACCEPTED}, begun_at = to_timestamp(h.begun_at / 1000),
     lease_until = case when r.cancel_requested then r.lease_until else least(to_timestamp(h.until / 1000), r.deadline) end
   from held h where r.ctid = h.ctid
   returning r.job_id, r.nominal_at`,
)

export interface AwaitedCallback {
  lease: Lease
  begunAt: Instant
}

/** Answers the keys of the runs that now wait for their callbacks. Fences are unique and in lock order. */
export async function awaitCallbacks(db: Queryable, items: readonly AwaitedCallback[]): Promise<Set<string>> {
  const rows = await db.query<[string, Instant]>(AWAIT, [
    ...fenceArrays(items.map(({ lease }) => lease)),
    items.map(({ begunAt }) => begunAt),
    items.map(({ lease }) => lease.deadline),
  ])
  return new Set(rows.map(([jobId, nominalAt]) => runKey({ jobId, nominalAt })))
}
