import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays, IS_OF_FENCE } from './heartbeat.sql.ts'
import type { Fence } from './lease.ts'

/** Only the live lease may leave something; a run whose row another transaction holds is passed over, and is not in the answer. */
const SAVE = statement(
  'save_checkpoints',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[], $6::text[], $7::text[])
       as u (shard, job_id, nominal_at, attempt, holder, value, progress)
   ), held as (
     select r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, u.value, u.progress
     from u cross join lateral (
       select r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id from belfry.runs r
       where ${IS_OF_FENCE} limit 1 for update skip locked) r
   )
   insert into belfry.checkpoints as c (nominal_at, job_id, attempt, shard, tenant_id, value, progress)
   select h.nominal_at, h.job_id, h.attempt, h.shard, h.tenant_id, h.value::json, h.progress::json from held h
   on conflict (shard, job_id, nominal_at) do update set attempt = excluded.attempt, tenant_id = excluded.tenant_id,
     value = coalesce(excluded.value, c.value), progress = coalesce(excluded.progress, c.progress)
   returning job_id, nominal_at`,
)
const READ = statement(
  'read_checkpoints',
  `select c.job_id, c.nominal_at, c.value
   from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at) cross join lateral (
     select c.job_id, c.nominal_at, c.value from belfry.checkpoints c
     where c.shard = u.shard and c.job_id = u.job_id and c.nominal_at = to_timestamp(u.nominal_at / 1000) limit 1) c
   where c.value is not null`,
)

/** Of runs that are over: an end that was written by another process than kept the checkpoint does not know of it. */
const PURGE = statement(
  'purge_checkpoints',
  `with over as (
     select c.shard, c.job_id, c.nominal_at from belfry.checkpoints c
     where not exists (select from belfry.runs r where r.shard = c.shard and r.job_id = c.job_id and r.nominal_at = c.nominal_at)
     limit $1 for update skip locked
   )
   delete from belfry.checkpoints c using over o where c.shard = o.shard and c.job_id = o.job_id and c.nominal_at = o.nominal_at`,
)
const PURGE_BATCH = 1_000

/** What an attempt leaves while it is performed, as JSON: for the next attempt, and for whoever watches. */
export interface Checkpoint {
  fence: Fence
  value: string | null
  progress: string | null
}

interface RunPlace {
  shard: number
  jobId: string
  nominalAt: Instant
}

/** Unique, in lock order. Answers which runs it was saved for. */
export async function saveCheckpoints(
  db: Queryable,
  items: readonly Checkpoint[],
): Promise<{ jobId: string; nominalAt: Instant }[]> {
  const rows = await db.query<[string, Instant]>(SAVE, [
    ...fenceArrays(items.map((item) => item.fence)),
    items.map((item) => item.value),
    items.map((item) => item.progress),
  ])
  return rows.map(([jobId, nominalAt]) => ({ jobId, nominalAt }))
}

/** The JSON of each run that has one. */
export async function readCheckpoints(
  db: Queryable,
  runs: readonly RunPlace[],
): Promise<{ jobId: string; nominalAt: Instant; json: string }[]> {
  const rows = await db.query<[string, Instant, string]>(READ, [
    runs.map((run) => run.shard),
    runs.map((run) => run.jobId),
    runs.map((run) => run.nominalAt),
  ])
  return rows.map(([jobId, nominalAt, json]) => ({ jobId, nominalAt, json }))
}

/** Answers how many went; a run that has a checkpoint is always a row, so one without is over. */
export const purgeCheckpoints = (db: Queryable): Promise<number> => db.execute(PURGE, [PURGE_BATCH])
