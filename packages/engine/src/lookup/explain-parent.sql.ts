import { isHeardOf } from '../dependencies/own-run.ts'
import { JOB_STATUS } from '../intake/job-row.sql.ts'
import { isJobId, shardOfJob } from '../job/ids.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Only what has a dead letter can be retried; a canceled, purged or deleted job has none. */
const PARENT = statement(
  'explain_parent',
  `select exists (select from belfry.dead_letters d where d.shard = $1 and d.job_id = $2 and ${isHeardOf('d')}),
     exists (select from belfry.jobs j where j.shard = $1 and j.id = $2 and j.status = ${JOB_STATUS.paused})
       or exists (select from belfry.specs s where s.shard = $1 and s.job_id = $2 and s.paused_at is not null)`,
)

/** Why a job that another waits for does not go on. */
export interface ExplainedParent {
  canBeRetried: boolean
  isPaused: boolean
}

export async function readParent(db: Queryable, jobId: string): Promise<ExplainedParent | null> {
  if (!isJobId(jobId)) return null
  const [row] = await db.query<[boolean, boolean]>(PARENT, [shardOfJob(jobId), jobId])
  return row ? { canBeRetried: row[0], isPaused: row[1] } : null
}
