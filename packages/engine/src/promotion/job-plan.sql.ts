import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const READ = statement(
  'read_job_plan',
  'select j.tenant_id, j.status, j.definition from belfry.jobs j where j.shard = $1 and j.id = $2 and j.status < 2',
)
const PAUSE = statement(
  'pause_job_without_times',
  `update belfry.jobs j set status = 1, pause_reason = $3, paused_by = 'belfry', paused_at = to_timestamp($4::float8 / 1000), updated_at = to_timestamp($4::float8 / 1000)
   where j.shard = $1 and j.id = $2 and j.status = 0`,
)

const PAUSED = 1

/** What planning a recurring job anew needs to know. It does not change while somebody holds the timer. */
export interface JobPlan {
  tenantId: number
  isPaused: boolean
  definition: Definition
}

/** Null: the job has no future, or is none that recurs. */
export async function readJobPlan(tx: Queryable, shard: number, jobId: string): Promise<JobPlan | null> {
  const [row] = await tx.query<[number, number, string]>(READ, [shard, jobId])
  if (!row) return null
  const [tenantId, status, definition] = row
  return { tenantId, isPaused: status === PAUSED, definition: JSON.parse(definition) }
}

export async function pauseJob(
  tx: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  reason: string,
  now: Instant,
): Promise<void> {
  await tx.execute(PAUSE, [shard, jobId, reason, now])
}
