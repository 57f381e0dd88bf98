import { CAUSE } from '../job/states.ts'

/**
 * When a one-off has ended. It has one run of its own: of the time that it was made for, or, if it waits for other jobs, of the end of
 * those. Triggers may make further runs beside it while its time is still to come. The job ends when its own run ends, in the way in
 * which that does; to cancel the job before leaves such an end too. Only that end is told to children and batches, is what those hear
 * that begin to wait later, and is the job's status. So only an own run has `has_dependents`.
 */
export const isOwnRun = (row: string): string => `${row}.cause = ${CAUSE.create}`

/** Runs whose ends other jobs hear of: all of a recurring job, the own one of a one-off. */
export const isHeardOf = (row: string): string => `(not ${row}.one_off or ${isOwnRun(row)})`

/** How a one-off ended, of the days since `since` (a timestamptz): the last end of its own run, which may have been opened again. */
export const ownEnd = (columns: string, { shard, jobId, since }: Record<'shard' | 'jobId' | 'since', string>): string =>
  `select ${columns} from belfry.attempts a
     where a.shard = ${shard} and a.job_id = ${jobId} and a.finished_at >= ${since} and a.final and ${isOwnRun('a')}
     order by a.finished_at desc, a.number desc limit 1`
