import { type KeyRef, refArrays } from '../concurrency/key-ref.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const READ = statement(
  'definitions_of_keys',
  `select u.job_id, coalesce(j.tenant_id, s.tenant_id), coalesce(j.definition, s.definition)
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
   left join lateral (
     select j.tenant_id, j.definition from belfry.jobs j where j.shard = u.shard and j.id = u.job_id limit 1) j on true
   left join lateral (
     select s.tenant_id, s.definition from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s on true`,
)
/** The row of a key says what its last writer did: as near to that as living runs tell. */
const NEWEST = statement(
  'newest_jobs_of_keys',
  `select r.shard, r.job_id, k.key from unnest($1::smallint[], $2::bigint[]) as k (shard, key) cross join lateral (
     select r.shard, r.job_id from belfry.runs r
     where r.shard = k.shard and r.limit_key = k.key order by r.nominal_at desc limit 20) r`,
)

export interface JobOfKey extends KeyRef {
  jobId: string
}

export async function newestJobsOfKeys(tx: Queryable, keys: readonly KeyRef[]): Promise<JobOfKey[]> {
  const rows = await tx.query<[number, string, string]>(NEWEST, refArrays(keys))
  return rows.map(([shard, jobId, key]) => ({ shard, jobId, key }))
}

/** What the jobs of these runs say; jobs that are gone say nothing. */
export async function definitionsOfKeys(
  tx: Queryable,
  runs: readonly { shard: number; jobId: string }[],
): Promise<Map<string, { tenantId: number; definition: string }>> {
  const rows = await tx.query<[string, number | null, string | null]>(READ, [
    runs.map(({ shard }) => shard),
    runs.map(({ jobId }) => jobId),
  ])
  return new Map(
    rows.flatMap(([jobId, tenantId, definition]) =>
      tenantId === null || definition === null ? [] : [[jobId, { tenantId, definition }] as const],
    ),
  )
}
