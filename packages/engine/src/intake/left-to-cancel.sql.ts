import { RUN_STATE } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const UNASKED = statement(
  'has_run_not_asked_to_stop',
  `select exists (select from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.state = ${RUN_STATE.leased} and not r.cancel_requested)`,
)

/** Whether a run of the job is performed that nobody has asked to stop yet. */
export async function hasUnaskedRun(tx: Queryable, job: { shard: number; jobId: string }): Promise<boolean> {
  return (await tx.query<[boolean]>(UNASKED, [job.shard, job.jobId]))[0]?.[0] === true
}
