import type { Instant } from '../runtime/clock.ts'
import { SECOND_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Timers due in one second from which on it is worth a word. */
export const CROWDED = 1_000
/** Looked into: a job's shard is chance, so some tell what all hold, and the question stays as cheap with 64 as with 8. */
const LOOKED_INTO = 8

/** By `timers_by_due`; whoever has seen enough stops. */
const COUNT = statement(
  'count_due_in_second',
  `select count(*)::int from (
     select from generate_series(0, $1::int - 1) as s (shard) cross join lateral (
       select from belfry.timers t
       where t.shard = s.shard and t.due_at >= to_timestamp($2::float8 / 1000) and t.due_at < to_timestamp($3::float8 / 1000) and t.due_at < 'infinity'
       limit $4) t
     limit $4) due`,
)

/** Whether about a thousand timers or more, of all tenants, are due in that second. */
export async function isCrowdedSecond(db: Queryable, shards: number, at: Instant): Promise<boolean> {
  const second = Math.floor(at / SECOND_MS) * SECOND_MS
  const looked = Math.min(shards, LOOKED_INTO)
  const enough = Math.ceil((CROWDED * looked) / shards)
  const [row] = await db.query<[number]>(COUNT, [looked, second, second + SECOND_MS, enough])
  return (row?.[0] ?? 0) >= enough
}
