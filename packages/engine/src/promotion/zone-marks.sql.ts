import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * By which zone data timers are planned: `zone_data:7` in `meta` is the edition of shard 7, `zone_data` the newest that holds
 * for all of them. Editions (`2025b`) sort as texts.
 */
const READ = statement(
  'read_zone_marks',
  `select m.key, m.value #>> '{}' from belfry.meta m where m.key like 'zone\\_data%'`,
)
const MARK = statement(
  'mark_zone_data',
  `insert into belfry.meta (key, value) select 'zone_data:' || u.shard, to_jsonb($1::text) from unnest($2::smallint[]) as u (shard)
   order by u.shard on conflict (key) do update set value = excluded.value`,
)
const RAISE = statement(
  'raise_zone_data',
  `insert into belfry.meta as m (key, value) select 'zone_data', to_jsonb($1::text)
   where (select count(*) from belfry.meta o where o.key like 'zone\\_data:%' and (o.value #>> '{}') collate "C" >= $1) >= $2
   on conflict (key) do update set value = excluded.value where (m.value #>> '{}') collate "C" < $1`,
)
const LOWER = statement(
  'lower_zone_marks',
  `update belfry.meta m set value = to_jsonb($1::text) where m.key like 'zone\\_data:%' and (m.value #>> '{}') collate "C" > $1`,
)

export interface ZoneMarks {
  /** Of all shards; null: nobody has said so yet. */
  all: string | null
  byShard: ReadonlyMap<number, string>
}

export async function readZoneMarks(db: Queryable): Promise<ZoneMarks> {
  const byShard = new Map<number, string>()
  let all: string | null = null
  for (const [key, version] of await db.query<[string, string]>(READ, [])) {
    const [, shard] = key.split(':')
    if (shard === undefined) all = version
    else byShard.set(Number(shard), version)
  }
  return { all, byShard }
}

/** The timers of these shards are planned by the edition. */
export async function markZoneData(db: Queryable, version: string, shards: readonly number[]): Promise<void> {
  await db.execute(MARK, [version, shards])
}

/** Says that all shards are planned by the edition, if they are. Never lowers. */
export async function raiseZoneData(db: Queryable, version: string, shards: number): Promise<boolean> {
  return (await db.execute(RAISE, [version, shards])) > 0
}

/** A node with an older edition plans jobs of any shard: newer ones have to look at all of them again. */
export async function lowerZoneMarks(db: Queryable, version: string): Promise<number> {
  return db.execute(LOWER, [version])
}
