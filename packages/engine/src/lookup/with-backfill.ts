import { backfillOfRun } from '../backfill/backfill-runs.sql.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Queryable } from '../store/database.ts'
import type { RunView } from './run-view.ts'

/** Only a run that a backfill made costs the look. */
export async function withBackfill<Found extends RunView | null>(db: Queryable, run: Found): Promise<Found> {
  if (run === null || run.cause !== 'backfill') return run
  const { jobId, nominalAt } = run
  const backfillId = await backfillOfRun(db, { shard: shardOfJob(jobId), jobId, nominalAt: nominalAt.getTime() })
  return backfillId === null ? run : { ...run, backfillId }
}
