import type { Definition } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import { runKey } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const PUT = statement(
  'put_run_payload',
  `insert into belfry.run_payloads (nominal_at, job_id, tenant_id, shard, payload)
   values (to_timestamp($1::float8 / 1000), $2, $3, $4, $5::json)`,
)
const READ = statement(
  'read_run_payloads',
  `select p.job_id, p.nominal_at, p.payload
   from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at) cross join lateral (
     select p.job_id, p.nominal_at, p.payload from belfry.run_payloads p
     where p.shard = u.shard and p.job_id = u.job_id and p.nominal_at = to_timestamp(u.nominal_at / 1000) limit 1) p`,
)
const PURGE_BATCH = 500
/** For one call: the rest is for the next one. */
const MAX_BATCHES = 100
/** As long as history is kept, and as long as the run is alive or may be redriven. */
const PURGE = statement(
  'purge_run_payloads',
  `with old as (
     select p.shard, p.job_id, p.nominal_at from belfry.run_payloads p
     where p.nominal_at < to_timestamp($1::float8 / 1000)
       and not exists (select from belfry.runs r where r.shard = p.shard and r.job_id = p.job_id and r.nominal_at = p.nominal_at)
       and not exists (select from belfry.dead_letters d where d.shard = p.shard and d.job_id = p.job_id and d.nominal_at = p.nominal_at)
       and not exists (select from belfry.attempts a
         where a.shard = p.shard and a.job_id = p.job_id and a.nominal_at = p.nominal_at and a.finished_at >= to_timestamp($1::float8 / 1000))
     order by p.nominal_at limit ${PURGE_BATCH} for update skip locked
   )
   delete from belfry.run_payloads p using old o where p.shard = o.shard and p.job_id = o.job_id and p.nominal_at = o.nominal_at`,
)

interface RunRef {
  jobId: string
  nominalAt: Instant
}

/** A run that is performed with another payload than its job's has it here, from its birth on and for as long as its history. */
export async function putRunPayload(
  tx: Queryable,
  { jobId, nominalAt, tenantId }: RunRef & { tenantId: number },
  json: string,
): Promise<void> {
  await tx.query(PUT, [nominalAt, jobId, tenantId, shardOfJob(jobId), json])
}

/** The JSON of each run that has a payload of its own, in the order of the runs. */
export async function readRunPayloads(db: Queryable, runs: readonly RunRef[]): Promise<(string | null)[]> {
  const rows = await db.query<[string, Instant, string]>(READ, [
    runs.map(({ jobId }) => shardOfJob(jobId)),
    runs.map(({ jobId }) => jobId),
    runs.map(({ nominalAt }) => nominalAt),
  ])
  const found = new Map(rows.map(([jobId, nominalAt, json]) => [runKey({ jobId, nominalAt }), json]))
  return runs.map((run) => found.get(runKey(run)) ?? null)
}

/** Removes those of runs that were triggered before, and are over for good. */
export async function purgeRunPayloads(db: Queryable, before: Instant): Promise<void> {
  for (let i = 0; i < MAX_BATCHES; i++) if ((await db.execute(PURGE, [before])) < PURGE_BATCH) return
}

/** The definition that a run with a payload of its own is performed with. */
export function withPayload(definitionJson: string, payloadJson: string): string {
  const { payloadRef: _, ...definition } = JSON.parse(definitionJson) as Definition
  return JSON.stringify({ ...definition, payload: JSON.parse(payloadJson) })
}
