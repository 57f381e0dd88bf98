import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** One at a time: it may have made as many runs as a backfill may. */
const PURGE = statement(
  'purge_backfill',
  `with old as (
     select b.id, b.job_id, b.from_nominal, b.to_nominal from belfry.backfills b
     where b.shard = $1 and b.ended_at < to_timestamp($2::float8 / 1000) order by b.ended_at limit 1 for update skip locked
   ), runs as (
     delete from belfry.backfill_runs o using old
     where o.shard = $1 and o.job_id = old.job_id and o.nominal_at >= old.from_nominal and o.nominal_at < old.to_nominal and o.backfill_id = old.id
   )
   delete from belfry.backfills b using old where b.shard = $1 and b.id = old.id`,
)

/** Of one shard in one call: the rest is for the next one. */
const MAX_PURGED = 1_000

/** Removes those that ended before: the history of their runs is gone too. */
export async function purgeBackfills(db: Queryable, shards: number, before: Instant): Promise<void> {
  for (let shard = 0; shard < shards; shard++) await purgeShard(db, shard, before)
}

async function purgeShard(db: Queryable, shard: number, before: Instant): Promise<void> {
  for (let i = 0; i < MAX_PURGED; i++) if ((await db.execute(PURGE, [shard, before])) === 0) return
}
