import type pg from 'pg'
import { CHILD_KIND } from '../job/after.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { boundsOf, type Partition, partitionName } from './partition.ts'
import { SPEC_COLUMNS, tableIn } from './partition-ddl.sql.ts'

/** Without a number of shards on record every number that an id can carry is looked at: no reference may be missed. */
const SHARDS = `(select coalesce((select (m.value #>> '{}')::int from belfry.meta m where m.key = 'shards'), 4096))`

const referring = (table: string, which: string): string =>
  `select r.shard, r.job_id from generate_series(0, ${SHARDS} - 1) as of_shard (shard) cross join lateral (
     select r.shard, r.job_id from belfry.${table} r
     where r.shard = of_shard.shard and r.job_id >= $1::uuid and r.job_id < $2::uuid and ${which}
     order by r.job_id limit $3) r`

/** Range scans of the primary keys, one per shard: the cost is that of what is there of jobs that were created on the day. */
const REFERRING = statement(
  'jobs_referring_to_specs',
  `select u.shard, u.job_id from (
     ${referring('timers', 'r.schedule_id is null')}
     union ${referring('runs', 'r.one_off')}
     union ${referring('dead_letters', 'r.one_off')}
     union select e.child_shard, e.child from belfry.edges e where e.child >= $1::uuid and e.child < $2::uuid and e.tenant_id > 0 and e.kind = ${CHILD_KIND.one_off}
   ) u limit $3`,
)

const nextJob = (after: string): string =>
  `select a.job_id from belfry.attempts a
         where a.shard = s.shard and a.job_id > ${after} and a.job_id < $4::uuid and a.finished_at >= to_timestamp($5::float8 / 1000)
         order by a.job_id limit 1`
/**
 * Jobs of which an attempt is kept, and whether they are one-offs: from job to job along `attempts_by_run`, so each costs one look-up
 * in each day, however many runs it had. Goes on behind a job of a shard, and ends after so many.
 */
const ENDED = statement(
  'jobs_with_history_of_day',
  `select s.shard, w.job_id, exists (select from belfry.specs p where p.shard = s.shard and p.job_id = w.job_id offset 0)
   from generate_series($1::int, ${SHARDS} - 1) as s (shard) cross join lateral (
     with recursive walk as (
       select (${nextJob('case when s.shard = $1 then $2::uuid else $3::uuid end')}) as job_id
       union all
       select (${nextJob('w.job_id')}) from walk w where w.job_id is not null
     ) select w.job_id from walk w where w.job_id is not null) w
   limit $6`,
)

const NOT_IN = (table: string): string =>
  `not exists (select from belfry.${table} r where r.shard = v.shard and r.job_id = v.job_id offset 0)`
/** Along the primary key. What nothing refers to in one snapshot is over, and nothing brings it back. */
const FORGET = statement(
  'purge_specs',
  `with visited as (
     select s.shard, s.job_id from belfry.specs_kept s where (s.shard, s.job_id) > ($1::smallint, $2::uuid) order by s.shard, s.job_id limit $3
   ), gone as (
     delete from belfry.specs_kept s using visited v
     where s.shard = v.shard and s.job_id = v.job_id and ${NOT_IN('timers')} and ${NOT_IN('runs')} and ${NOT_IN('dead_letters')}
       and not exists (select from belfry.edges e where e.child = v.job_id and e.tenant_id > 0 and e.kind = ${CHILD_KIND.one_off} offset 0)
       and not exists (select from belfry.attempts a
         where a.shard = v.shard and a.job_id = v.job_id and a.finished_at >= to_timestamp($4::float8 / 1000) offset 0)
   )
   select v.shard, v.job_id from visited v order by v.shard, v.job_id offset $3 - 1 limit 1`,
)

/** Jobs that one statement passes. */
const STEP = 5_000
/** Characters of an id before its version, which is never 0. */
const BEFORE_VERSION = 14

export interface SpecRef {
  shard: number
  jobId: string
}

/**
 * Which one-offs of the day must be found: those that are to come, alive or dead, those that another job may open again with itself,
 * and those of which history since `since` knows. What is there is looked up in one snapshot and before history, so a job that ends
 * meanwhile is not missed; and one that is over, and of which nothing is left, does not come back.
 */
export async function referringJobs(
  db: Queryable,
  day: Partition,
  { since, limit }: { since: Instant; limit: number },
): Promise<SpecRef[]> {
  const { from, to } = boundsOf(day)
  const found = new Map<string, SpecRef>()
  for (const [shard, jobId] of await db.query<[number, string]>(REFERRING, [from, to, limit]))
    found.set(jobId, { shard, jobId })
  const beforeAll = `${from.slice(0, BEFORE_VERSION)}0000-0000-000000000000`
  let behind: [shard: number, jobId: string] = [0, beforeAll]
  while (found.size < limit) {
    const rows = await db.query<[number, string, boolean]>(ENDED, [...behind, beforeAll, to, since, STEP])
    for (const [shard, jobId, isOneOff] of rows) if (isOneOff) found.set(jobId, { shard, jobId })
    const last = rows[STEP - 1]
    if (last === undefined) break
    behind = [last[0], last[1]]
  }
  return [...found.values()]
}

/** Copies what is still referred to from a detached day into `specs_kept`. The limit inside the look-up pins the plan. */
export async function keepReferred(
  client: pg.Client,
  schema: string,
  day: Partition,
  jobs: readonly SpecRef[],
): Promise<void> {
  await client.query(
    `insert into ${tableIn(schema, 'specs_kept')} (${SPEC_COLUMNS})
     select ${SPEC_COLUMNS.replaceAll(/\w+/g, 's.$&')}
     from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id) cross join lateral (
       select ${SPEC_COLUMNS} from ${tableIn(schema, partitionName(day))} s where s.shard = u.shard and s.job_id = u.job_id limit 1) s`,
    [jobs.map(({ shard }) => shard), jobs.map(({ jobId }) => jobId)],
  )
}

const BATCH = 1_000
const FIRST = '00000000-0000-0000-0000-000000000000'

/** Removes definitions that outlived their day and that nothing refers to any more. Goes over all of them, as `purgeEdges` does. */
export async function purgeSpecs(db: Queryable, since: Instant): Promise<void> {
  let after: [number, string] = [-1, FIRST]
  for (;;) {
    const [last] = await db.query<[number, string]>(FORGET, [...after, BATCH, since])
    if (last === undefined) return
    after = last
  }
}
