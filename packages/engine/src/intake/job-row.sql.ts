import { BelfryError, refusal } from '../errors.ts'
import { isJobId, shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

export const JOB_STATUS = { active: 0, paused: 1, completed: 2, canceled: 3 } as const

const LOCK_JOB = statement(
  'lock_job',
  `select j.tenant_id, j.version, j.status, j.name, j.definition, j.pause_reason, j.paused_by from belfry.jobs j where j.shard = $1 and j.id = $2 for update`,
)
const LOCK_SPEC = statement(
  'lock_spec',
  `select s.tenant_id, s.version, case when s.paused_at is null then 0 else 1 end, s.name, s.definition, s.pause_reason, s.paused_by
   from belfry.specs s where s.shard = $1 and s.job_id = $2 for update`,
)
const WRITE_JOB = statement(
  'write_job',
  `update belfry.jobs j set version = $3, status = $4, name = $5, definition = $6::json, pause_reason = $7, updated_at = to_timestamp($8::float8 / 1000),
     paused_at = case when $9::float8 is not null then coalesce(j.paused_at, to_timestamp($9::float8 / 1000)) end,
     paused_by = case when $9::float8 is not null then $10 end
   where j.shard = $1 and j.id = $2`,
)
const WRITE_SPEC = statement(
  'write_spec',
  `update belfry.specs s set version = $3, name = $4, definition = $5::json, pause_reason = $6, updated_at = to_timestamp($7::float8 / 1000),
     paused_at = case when $8::float8 is not null then coalesce(s.paused_at, to_timestamp($8::float8 / 1000)) end,
     paused_by = case when $8::float8 is not null then $9 end
   where s.shard = $1 and s.job_id = $2`,
)
const DELETE_JOB = statement('delete_job', 'delete from belfry.jobs j where j.shard = $1 and j.id = $2')
const DELETE_SPEC = statement('delete_spec', 'delete from belfry.specs s where s.shard = $1 and s.job_id = $2')
const RAISE_RUNS = statement(
  'raise_job_version_of_runs',
  `update belfry.runs r set job_version = $3 where r.shard = $1 and r.job_id = $2`,
)

export interface JobRow {
  shard: number
  jobId: string
  oneOff: boolean
  tenantId: number
  version: number
  status: number
  name: string | null
  definitionJson: string
  pauseReason: string | null
  /** Who paused it, if it is. */
  pausedBy: string | null
}

type Row = [number, number, number, string | null, string, string | null, string | null]

/** The job's definition, wherever it is kept, locked after its timer. Null: there is no such job. */
export async function lockJob(tx: Queryable, jobId: string): Promise<JobRow | null> {
  const shard = shardOfJob(jobId)
  const [recurring] = await tx.query<Row>(LOCK_JOB, [shard, jobId])
  const [row] = recurring ? [recurring] : await tx.query<Row>(LOCK_SPEC, [shard, jobId])
  if (!row) return null
  const [tenantId, version, status, name, definitionJson, pauseReason, pausedBy] = row
  const described = { version, status, name, definitionJson, pauseReason, pausedBy }
  return { shard, jobId, oneOff: recurring === undefined, tenantId, ...described }
}

/** A job that was paused already stays so since then, whatever else of it changes. */
export async function writeJob(tx: Queryable, job: JobRow, now: Instant): Promise<void> {
  const pausedAt = job.status === JOB_STATUS.paused ? now : null
  const which = [job.shard, job.jobId, job.version]
  const what = [job.name, job.definitionJson, job.pauseReason, now, pausedAt, job.pausedBy]
  if (job.oneOff) await tx.query(WRITE_SPEC, [...which, ...what])
  else await tx.query(WRITE_JOB, [...which, job.status, ...what])
}

export async function deleteJob(tx: Queryable, { shard, jobId, oneOff }: JobRow): Promise<void> {
  await tx.execute(oneOff ? DELETE_SPEC : DELETE_JOB, [shard, jobId])
}

/** An attempt performs the definition that is current at its lease: live runs carry the version they will be performed with. */
export async function raiseVersionOfRuns(tx: Queryable, job: JobRow): Promise<void> {
  await tx.query(RAISE_RUNS, [job.shard, job.jobId, job.version])
}

export function checkedJobId(jobId: unknown): string {
  if (typeof jobId === 'string' && isJobId(jobId)) return jobId
  const said = 'a job id looks like 019a8d3e-1f2a-7007-8abc-0123456789ab'
  throw refusal('invalid_argument', 'jobId', 'must be a job id as create() answers it', said)
}

export const noSuchJob = (jobId: string): BelfryError => new BelfryError('not_found', `there is no job ${jobId}`)
