import { RUN_STATE } from '../job/states.ts'
import type { RunsOfJob } from '../ready/end-unrun.sql.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const LOCK = statement(
  'lock_runs_of_job',
  `select r.state = ${RUN_STATE.leased}, r.cancel_requested from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000))
   order by r.nominal_at for update`,
)

/** A live run whose row is held. */
export interface HeldRun {
  isLeased: boolean
  /** A caller, or another run, has asked it to stop. */
  isAsked: boolean
}

/** Holds the live runs of a job, or one of them, in whatever state: until the commit none of them moves. */
export async function lockRuns(tx: Queryable, { shard, jobId, nominalAt }: RunsOfJob): Promise<HeldRun[]> {
  const rows = await tx.query<[boolean, boolean]>(LOCK, [shard, jobId, nominalAt])
  return rows.map(([isLeased, isAsked]) => ({ isLeased, isAsked }))
}
