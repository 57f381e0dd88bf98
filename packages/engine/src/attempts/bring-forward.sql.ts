import { FAILURE_CLASS, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Why a run waits stands in its last attempt. A run that somebody wakes meanwhile stays as it is. The sort is there so that history
 * has been looked at before the first is changed ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
const BRING_FORWARD = statement(
  'bring_forward_held_runs',
  `with held as (
     select r.shard, r.job_id, r.nominal_at, row_number() over (order by r.due_at) as place
     from belfry.runs r cross join lateral (
       select from belfry.attempts a
       where a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at and a.finished_at >= r.nominal_at - interval '1 day'
         and a.number = r.attempt and a.failure_class = ${FAILURE_CLASS.circuit_open} and a.error = $2 limit 1) a
     where r.tenant_id = $1 and r.state = ${RUN_STATE.waiting} and r.due_at > to_timestamp($3::float8 / 1000)
     order by r.due_at limit 10000
   )
   update belfry.runs r set due_at = least(r.due_at, to_timestamp(($3::float8 + h.place * $4::float8) / 1000))
   from (select * from held order by shard, job_id, nominal_at offset 0) h where r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at and r.state = ${RUN_STATE.waiting}
   returning r.shard, r.due_at`,
)

/** Lets runs that were held with this explanation come back now, one after the other, instead of when they were told to. */
export async function bringForward(
  db: Queryable,
  held: { tenantId: number; error: string },
  { now, spacingMs }: { now: Instant; spacingMs: number },
): Promise<{ shard: number; dueAt: Instant }[]> {
  const rows = await db.query<[number, Instant]>(BRING_FORWARD, [held.tenantId, held.error, now, spacingMs])
  return rows.map(([shard, dueAt]) => ({ shard, dueAt }))
}
