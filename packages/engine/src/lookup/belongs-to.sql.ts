import { isJobId, parseRunId, shardOfJob } from '../job/ids.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** By primary key. A job keeps its tenant for ever, so what is found here still holds when the change comes. */
const JOB_BELONGS = statement(
  'job_belongs_to_tenant',
  `select exists (select from belfry.jobs j where j.shard = $1 and j.id = $2 and j.tenant_id = $3)
     or exists (select from belfry.specs s where s.shard = $1 and s.job_id = $2 and s.tenant_id = $3)`,
)
/** The definition may be gone before the last run is; then the run, its dead letter or its history tells. */
const RUN_BELONGS = statement(
  'run_belongs_to_tenant',
  `select exists (select from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($4::float8 / 1000) and r.tenant_id = $3)
     or exists (select from belfry.dead_letters d where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($4::float8 / 1000) and d.tenant_id = $3)
     or exists (select from belfry.attempts a where a.shard = $1 and a.job_id = $2 and a.nominal_at = to_timestamp($4::float8 / 1000) and a.tenant_id = $3)`,
)

export async function jobBelongsTo(db: Queryable, tenantId: number, jobId: string): Promise<boolean> {
  if (!isJobId(jobId)) return false
  const [row] = await db.query<[boolean]>(JOB_BELONGS, [shardOfJob(jobId), jobId, tenantId])
  return row?.[0] === true
}

export async function runBelongsTo(db: Queryable, tenantId: number, runId: string): Promise<boolean> {
  const run = parseRunId(runId)
  if (run === null) return false
  const { jobId, nominalAt } = run
  const [row] = await db.query<[boolean]>(RUN_BELONGS, [shardOfJob(jobId), jobId, tenantId, nominalAt])
  return row?.[0] === true
}
