import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Gate by gate. A run that another transaction holds, or has just changed, is left: it comes by itself, or with the next call.
 *
 * The state is a range: as an equality it would also admit the index of all waiting runs, which PostgreSQL before 18 takes
 * while few runs are there, and would go on reading whole when there are many.
 */
const BRING_FORWARD = statement(
  'bring_forward',
  `with held as (
     select r.ctid, r.due_at, r.nominal_at from unnest($1::bigint[]) as g (key) cross join lateral (
       select r.ctid, r.due_at, r.nominal_at from belfry.runs r
       where r.gate_key = g.key and r.state >= ${RUN_STATE.waiting} and r.state <= ${RUN_STATE.waiting}
         and r.due_at > to_timestamp($2::float8 / 1000)
       order by r.state, r.due_at limit $5 for update skip locked) r
     limit $5
   ), placed as (
     select h.ctid, row_number() over (order by h.due_at, h.nominal_at) as place from held h
   )
   update belfry.runs r set due_at = least(r.due_at, to_timestamp(($3::float8 + p.place * $4::float8) / 1000))
   from placed p where r.ctid = p.ctid
   returning r.shard, r.due_at`,
)

/** How runs that were put aside come back: one behind the other, in the order in which they would come by themselves. */
export interface Return {
  /** Those that are due by then come soon enough. */
  dueAfter: Instant
  from: Instant
  spacingMs: number
  limit: number
}

/** Lets waiting runs of these gates come back from `from` on instead of when they were told to; answers their new times. */
export async function bringForward(
  db: Queryable,
  gateKeys: readonly string[],
  { dueAfter, from, spacingMs, limit }: Return,
): Promise<{ shard: number; dueAt: Instant }[]> {
  const rows = await db.query<[number, Instant]>(BRING_FORWARD, [gateKeys, dueAfter, from, spacingMs, limit])
  return rows.map(([shard, dueAt]) => ({ shard, dueAt }))
}
