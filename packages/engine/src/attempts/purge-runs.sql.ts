import { shardOfJob } from '../job/ids.ts'
import { OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { ENDED_RUN, recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'

/**
 * One batch of a tenant's runs in a queue that are not leased, by the primary key from a point on, so that all batches together walk
 * the table once; rows that another transaction holds are passed over. The last row of the answer says where the batch ended.
 */
const PURGE = statement(
  'purge_runs',
  `with held as (
     select r.shard, r.job_id, r.nominal_at from belfry.runs r
     where (r.shard, r.job_id, r.nominal_at) > ($7::smallint, $3::uuid, to_timestamp($4::float8 / 1000)) and r.tenant_id = $1 and r.queue_id = $2
       and r.state <> ${RUN_STATE.leased}
     order by r.shard, r.job_id, r.nominal_at limit $6 for update skip locked
   ), gone as (
     delete from belfry.runs r using held h where r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at
     returning ${ENDED_RUN}
   ), unchecked as (
     delete from belfry.checkpoints c using gone g where c.shard = g.shard and c.job_id = g.job_id and c.nominal_at = g.nominal_at
   ), ${recordUnrun('$5', { outcome: OUTCOME.canceled })}
   select g.job_id, g.nominal_at, g.one_off, g.has_dependents from gone g order by g.shard, g.job_id, g.nominal_at`,
)

export interface PurgedBatch {
  purged: number
  /** Recurring jobs of which a run went: another may have waited for it. */
  jobIds: string[]
  /** Other jobs wait for some of them. */
  hasTold: boolean
  /** Where the next batch begins; null: that was the last. */
  next: PurgePoint | null
}

export interface PurgePoint {
  jobId: string
  nominalAt: Instant
}

const FIRST: PurgePoint = { jobId: '00000000-0000-0000-0000-000000000000', nominalAt: 0 }

export async function purgeRuns(
  tx: Queryable,
  of: { tenantId: number; queueId: number; after: PurgePoint | null; limit: number },
  now: Instant,
): Promise<PurgedBatch> {
  const { jobId, nominalAt } = of.after ?? FIRST
  const rows = await tx.query<[string, Instant, boolean, boolean]>(PURGE, [
    ...[of.tenantId, of.queueId, jobId, nominalAt, now, of.limit],
    of.after === null ? -1 : shardOfJob(jobId),
  ])
  const last = rows.at(-1)
  return {
    purged: rows.length,
    jobIds: [...new Set(rows.filter(([, , isOneOff]) => !isOneOff).map(([jobId]) => jobId))],
    hasTold: rows.some(([, , , isAwaited]) => isAwaited),
    next: rows.length === of.limit && last ? { jobId: last[0], nominalAt: last[1] } : null,
  }
}
