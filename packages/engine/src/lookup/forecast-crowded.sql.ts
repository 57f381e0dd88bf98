import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Timers due in one second from which on it is worth a word. */
export const CROWDED = 1_000
const SECOND_MS = 1_000

/** By `timers_by_due`, a look into each shard; whoever has seen so many stops. */
const COUNT = statement(
  'count_due_in_second',
  `select count(*)::int from (
     select from generate_series(0, $1::int - 1) as s (shard) cross join lateral (
       select from belfry.timers t
       where t.shard = s.shard and t.due_at >= to_timestamp($2::float8 / 1000) and t.due_at < to_timestamp($3::float8 / 1000) and t.due_at < 'infinity'
       limit ${CROWDED}) t
     limit ${CROWDED}) due`,
)

/** Whether that second has so many timers, of all tenants, that they are due in a crowd. */
export async function isCrowdedSecond(db: Queryable, shards: number, at: Instant): Promise<boolean> {
  const second = Math.floor(at / SECOND_MS) * SECOND_MS
  const [row] = await db.query<[number]>(COUNT, [shards, second, second + SECOND_MS])
  return (row?.[0] ?? 0) >= CROWDED
}
