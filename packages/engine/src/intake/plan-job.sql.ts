import { BelfryError } from '../errors.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Transaction } from '../store/database.ts'
import { isContention, isOutage } from '../store/database-errors.ts'
import { statement } from '../store/statement.ts'
import { type LockedTimer, NEVER_DUE, removeTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import type { Intake } from './intake.ts'
import { JOB_STATUS, lockJob, writeJob } from './job-row.sql.ts'

const REMOVE_JOB = statement('remove_job', 'delete from belfry.jobs j where j.shard = $1 and j.id = $2')

/**
 * Plans a job that somebody created by SQL: understands its definition as `create` would, and puts it where it belongs,
 * under the id it has. One that cannot be understood is paused with the reason, for a person to see.
 */
export async function planJob(
  tx: Transaction,
  deps: { clock: Clock; intake: Intake },
  timer: LockedTimer,
): Promise<{ afterCommit(): void }> {
  const now = deps.clock.now()
  const job = await lockJob(tx, timer.jobId)
  if (!job || job.oneOff) {
    await removeTimer(tx, timer.shard, timer.jobId)
    return { afterCommit: () => {} }
  }
  try {
    const prepared = await deps.intake.prepareFor(timer.jobId, JSON.parse(job.definitionJson))
    // A name that is taken is found out after the job was removed to be put anew.
    await tx.undoable(async () => {
      await removeTimer(tx, timer.shard, timer.jobId)
      await tx.query(REMOVE_JOB, [timer.shard, timer.jobId])
      await deps.intake.putIn(tx, prepared, now)
    })
    return { afterCommit: () => deps.intake.announce([prepared]) }
  } catch (error) {
    // Neither says anything about the job: it is planned at the next sweep.
    if (!(error instanceof BelfryError) || isOutage(error) || isContention(error)) throw error
    await writeTimer(tx, { ...timer, dueAt: NEVER_DUE })
    await writeJob(
      tx,
      {
        ...job,
        status: JOB_STATUS.paused,
        pauseReason: `cannot be understood: ${error.message}`,
        pausedBy: 'belfry',
      },
      now,
    )
    return { afterCommit: () => {} }
  }
}
