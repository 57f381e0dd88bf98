import { KEYED } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const GIVE = statement(
  'give_runs_their_key',
  `update belfry.runs r set limit_key = $3, delivery = r.delivery + ${KEYED}
   where r.shard = $1 and r.job_id = $2 and r.delivery < ${KEYED}`,
)
const GIVE_DEAD = statement(
  'give_dead_letters_their_key',
  `update belfry.dead_letters d set limit_key = $3, delivery = d.delivery + ${KEYED}
   where d.shard = $1 and d.job_id = $2 and d.delivery < ${KEYED}`,
)

/**
 * A job got a limit: the runs that it has count by it from now on, also those at work. The transaction holds the job's timer, so
 * none is born meanwhile; a claim that is under way is waited for.
 */
export async function giveRunsKey(tx: Queryable, job: { shard: number; jobId: string }, key: string): Promise<void> {
  const values = [job.shard, job.jobId, key]
  await tx.execute(GIVE, values)
  await tx.execute(GIVE_DEAD, values)
}
