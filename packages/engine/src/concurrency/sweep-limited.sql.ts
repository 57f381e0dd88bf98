import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Piece } from '../runtime/rounds.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { AHEAD_MS } from './space-limited.sql.ts'

/**
 * Keys of which runs wait though a slot is free, and the rate allows one soon. From key to key along `runs_limited`, however many
 * runs of one wait, and no further than the last that may be visited: that one is answered too, as the place to go on from.
 */
const SWEEP = statement(
  'sweep_limited_runs',
  `select s.shard, v.key, v.n = $3::int, i.is_free
   from unnest($1::smallint[], $2::bigint[]) as s (shard, after)
   cross join lateral (
     with recursive key as (
       (select r.limit_key as key, 1 as n from belfry.runs r
        where r.shard = s.shard and r.state = ${RUN_STATE.limited} and r.limit_key > s.after order by r.limit_key limit 1)
       union all
       select further.limit_key, key.n + 1 from key cross join lateral (
         select r.limit_key from belfry.runs r
         where r.shard = s.shard and r.state = ${RUN_STATE.limited} and r.limit_key > key.key order by r.limit_key limit 1) further
       where key.n < $3::int
     )
     select key.key, key.n from key) v
   left join lateral (
     select l.max_running, l.paused_at, l.rate_count, l.used_at, l.rate_at + (1 - l.rate_burst) * (l.rate_period_ms * 1000.0 / l.rate_count) as next_at
     from belfry.limits l where l.shard = s.shard and l.kind = ${LIMIT_KIND.key} and l.key = v.key limit 1) l on true
   cross join lateral (
     select l.paused_at is null
       and (l.rate_count is null or (l.next_at <= ($4::float8 + ${AHEAD_MS}) * 1000 and l.used_at <= to_timestamp(($4::float8 + ${AHEAD_MS / 2}) / 1000)))
       and (l.max_running is null or l.max_running > (
         select count(*) from (
           select from belfry.runs r where r.shard = s.shard and r.limit_key = v.key and r.state = ${RUN_STATE.leased}
           limit l.max_running) c)) as is_free
     offset 0) i
   where i.is_free or v.n = $3::int`,
)

/** The position before every key. */
export const BEFORE_KEYS = (-(2n ** 63n)).toString()

/** Tells `look` of the keys; answers the last one of each shard of which not all were visited. */
export async function sweepLimited(
  db: Queryable,
  { shards, after, perShard }: Piece,
  now: Instant,
  look: (shard: number, key: string) => void,
): Promise<Map<number, string>> {
  const rows = await db.query<[number, string, boolean, boolean]>(SWEEP, [shards, after, perShard, now])
  for (const [shard, key, , isFree] of rows) if (isFree) look(shard, key)
  return new Map(rows.filter(([, , isLast]) => isLast).map(([shard, key]) => [shard, key]))
}
