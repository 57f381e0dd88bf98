import type pg from 'pg'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { boundsOf, type Partition, partitionName } from './partition.ts'
import { SPEC_COLUMNS, tableIn } from './partition-ddl.sql.ts'

/** Without a number of shards on record every number that an id can carry is looked at: no reference may be missed. */
const shards = (meta: string): string =>
  `generate_series(0, coalesce((select (m.value #>> '{}')::int from ${meta} m where m.key = 'shards'), 4096) - 1)`

/** Range scans of the primary key, one per shard: the cost is that of the timers whose jobs were created on the day. */
const REFERRING_TIMERS = statement(
  'timers_referring_to_specs',
  `select t.shard, t.job_id
   from ${shards('belfry.meta')} as of_shard (shard) cross join lateral (
     select t.shard, t.job_id from belfry.timers t
     where t.shard = of_shard.shard and t.job_id >= $1::uuid and t.job_id < $2::uuid and t.schedule_id is null
     order by t.job_id limit $3) t
   limit $3`,
)

export interface SpecRef {
  shard: number
  jobId: string
}

export async function timersReferringTo(db: Queryable, day: Partition, limit: number): Promise<SpecRef[]> {
  const { from, to } = boundsOf(day)
  const rows = await db.query<[number, string]>(REFERRING_TIMERS, [from, to, limit])
  return rows.map(([shard, jobId]) => ({ shard, jobId }))
}

/**
 * Copies what is still referred to from a detached day into `specs_kept`; answers how many that were. Runs and dead letters
 * are looked up here, under the lock, because a run of an old one-off may be opened again at any moment; a timer of one
 * cannot come into being. The limit inside each look-up also pins the plan: without it the join may be turned around, which
 * made this take ten seconds for ten thousand rows.
 */
export async function keepReferred(
  client: pg.Client,
  schema: string,
  day: Partition,
  timers: readonly SpecRef[],
  limit: number,
): Promise<number> {
  const { from, to } = boundsOf(day)
  const referring = (table: string) =>
    `select r.shard, r.job_id from ${shards(tableIn(schema, 'meta'))} as of_shard (shard) cross join lateral (
       select r.shard, r.job_id from ${tableIn(schema, table)} r
       where r.shard = of_shard.shard and r.job_id >= $3::uuid and r.job_id < $4::uuid and r.one_off
       order by r.job_id limit $5) r`
  const { rowCount } = await client.query(
    `insert into ${tableIn(schema, 'specs_kept')} (${SPEC_COLUMNS})
     select ${SPEC_COLUMNS.replaceAll(/\w+/g, 's.$&')}
     from (
       select u.shard, u.job_id from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
       union ${referring('runs')}
       union ${referring('dead_letters')}
       union select e.child_shard, e.child from ${tableIn(schema, 'edges')} e where e.child >= $3::uuid and e.child < $4::uuid and e.tenant_id > 0 and e.kind = 0
     ) u cross join lateral (
       select ${SPEC_COLUMNS} from ${tableIn(schema, partitionName(day))} s where s.shard = u.shard and s.job_id = u.job_id limit 1) s
     limit $5`,
    [timers.map(({ shard }) => shard), timers.map(({ jobId }) => jobId), from, to, limit],
  )
  return rowCount ?? 0
}
