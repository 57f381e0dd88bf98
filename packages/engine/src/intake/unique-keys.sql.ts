import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { KEY_KIND, type Key, shardIn } from './keys.sql.ts'

/**
 * Whether a job has a run or a future that has not started, and a run that has. `offset 0`
 * keeps the planner from reading a whole table once instead of looking up one job after the other.
 */
const isQueued = (shard: string, jobId: string): string =>
  `(exists (select from belfry.timers t where t.shard = ${shard} and t.job_id = ${jobId} offset 0)
      or exists (select from belfry.runs r where r.shard = ${shard} and r.job_id = ${jobId} and r.attempt = 0 and r.state <> ${RUN_STATE.leased} offset 0))`
const isActive = (shard: string, jobId: string): string =>
  `exists (select from belfry.runs r where r.shard = ${shard} and r.job_id = ${jobId} and (r.attempt > 0 or r.state = ${RUN_STATE.leased}) offset 0)`

const LIVING = statement(
  'living_jobs',
  `select u.job_id, ${isQueued('u.shard', 'u.job_id')}, ${isActive('u.shard', 'u.job_id')}
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)`,
)
const WRITE = statement(
  'write_unique_keys',
  `update belfry.keys k set job_id = u.job_id, others = string_to_array(u.others, ',')::uuid[], expires_at = to_timestamp($6::float8 / 1000)
   from (
     select u.*, k.ctid as place from unnest($1::smallint[], $2::int[], $3::text[], $4::uuid[], $5::text[]) as u (shard, tenant_id, key, job_id, others)
     cross join lateral (
       select k.ctid from belfry.keys k
       where k.shard = u.shard and k.tenant_id = u.tenant_id and k.kind = ${KEY_KIND.unique} and k.key = u.key limit 1 for update) k
   ) u
   where k.ctid = u.place and k.shard = u.shard`,
)
const DEFINITION = statement(
  'definition_of_job',
  `select j.definition::text, j.tenant_id from belfry.jobs j where j.shard = $1 and j.id = $2
   union all select s.definition::text, s.tenant_id from belfry.specs s where s.shard = $1 and s.job_id = $2`,
)
/**
 * Whoever takes the key meanwhile holds its row, or has changed it: that one stays. All are looked at before the first is locked
 * ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
const PURGE = statement(
  'purge_keys',
  `with old as (
     select k.ctid from belfry.keys k where k.ctid = any (array(
       select k.ctid from belfry.keys k
       where k.shard = $1 and k.expires_at <= to_timestamp($2::float8 / 1000)
         and (k.kind = ${KEY_KIND.idempotency} or k.kind = ${KEY_KIND.unique} and not exists (
           select from unnest(k.job_id || coalesce(k.others, '{}')) as u (job_id)
           cross join lateral (select ${shardIn('u.job_id')} as shard) s
           where ${isQueued('s.shard', 'u.job_id')} or ${isActive('s.shard', 'u.job_id')}))
       limit $3))
     for update of k skip locked
   )
   delete from belfry.keys k using old where k.ctid = old.ctid and k.shard = $1 and k.expires_at <= to_timestamp($2::float8 / 1000)`,
)

/** A job that is not over. A recurring one is queued as long as it has times to come, and active while it runs. */
export interface LivingJob {
  jobId: string
  isQueued: boolean
  isActive: boolean
}

/** Those of these jobs that are not over. In a statement after the one that locked their keys, so that it sees the last commit. */
export async function readLiving(tx: Queryable, jobIds: readonly string[]): Promise<Map<string, LivingJob>> {
  if (jobIds.length === 0) return new Map()
  const rows = await tx.query<[string, boolean, boolean]>(LIVING, [jobIds.map(shardOfJob), jobIds])
  return new Map(
    rows.flatMap(([jobId, isQueued, isActive]) =>
      isQueued || isActive ? [[jobId, { jobId, isQueued, isActive }] as const] : [],
    ),
  )
}

/** Of keys whose rows the transaction holds. */
export async function writeUniqueKeys(
  tx: Queryable,
  keys: readonly (Pick<Key, 'shard' | 'tenantId' | 'key' | 'jobId'> & { others: readonly string[] })[],
  lookAgainAt: Instant,
): Promise<void> {
  await tx.execute(WRITE, [
    keys.map((key) => key.shard),
    keys.map((key) => key.tenantId),
    keys.map((key) => key.key),
    keys.map((key) => key.jobId),
    keys.map((key) => (key.others.length === 0 ? null : key.others.join(','))),
    lookAgainAt,
  ])
}

/** Null: there is no such job. */
export async function definitionOf(
  tx: Queryable,
  jobId: string,
): Promise<{ definitionJson: string; tenantId: number } | null> {
  const [row] = await tx.query<[string, number]>(DEFINITION, [shardOfJob(jobId), jobId])
  return row ? { definitionJson: row[0], tenantId: row[1] } : null
}

/** Removes what has expired, and unique keys whose jobs are over; answers how many. */
export const purgeKeys = (db: Queryable, shard: number, now: Instant, limit: number): Promise<number> =>
  db.execute(PURGE, [shard, now, limit])
