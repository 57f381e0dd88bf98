import { BelfryError } from '../errors.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Transaction } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { LockedTimer } from '../timers/lock-timer.sql.ts'
import { JOB_STATUS, type JobRow } from './job-row.sql.ts'

const WAITS = statement(
  'job_waits_for_others',
  `select r.state from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.state = ${RUN_STATE.dependent} limit 1`,
)

/** The timer of a job that is still to run at some time; else throws what became of it. */
export async function mustHaveFuture(
  tx: Transaction,
  job: JobRow,
  timer: LockedTimer | null,
  code: 'already_finished' | 'already_due' = 'already_finished',
): Promise<LockedTimer> {
  if (timer && job.status <= JOB_STATUS.paused) return timer
  const { shard, jobId } = job
  if ((await tx.query(WAITS, [shard, jobId])).length > 0)
    throw new BelfryError(
      'already_due',
      `job ${jobId} waits for other jobs and is a run already: it can be triggered, which starts it now, or canceled, but not changed, paused or resumed`,
    )
  const became = code === 'already_due' ? 'has become a run, or has finished' : 'has no future any more'
  throw new BelfryError(code, `job ${jobId} ${became}`)
}
