import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const DELETE = statement(
  'delete_dead_letter',
  `delete from belfry.dead_letters d
   where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($3::float8 / 1000) and d.tenant_id = $4`,
)

/** False: the tenant has no such dead letter. */
export async function deleteDeadLetter(
  tx: Queryable,
  tenantId: number,
  { jobId, nominalAt }: { jobId: string; nominalAt: Instant },
): Promise<boolean> {
  return (await tx.execute(DELETE, [shardOfJob(jobId), jobId, nominalAt, tenantId])) > 0
}
