import type { RunsOfJob } from '../ready/end-unrun.sql.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const LOCK = statement(
  'lock_runs_of_job',
  `select from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000))
   order by r.nominal_at for update`,
)

/** Holds the live runs of a job, or one of them, in whatever state: until the commit none of them moves. */
export async function lockRuns(tx: Queryable, { shard, jobId, nominalAt }: RunsOfJob): Promise<void> {
  await tx.query(LOCK, [shard, jobId, nominalAt])
}
