import { OUTCOME } from '../job/states.ts'
import type { Fence } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { ENDED_LEASE, recordEnds } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'

/** On a caller's connection, with the caller's planner settings: one run, every look-up by the whole primary key. */
const COMPLETE = statement(
  'complete_in',
  `with held as (
     select r.shard, r.job_id, r.nominal_at from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000) and r.attempt = $4 and r.holder = $5 for update
   ), gone as (
     delete from belfry.runs r using held h
     where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000) and h.shard = r.shard
     returning ${ENDED_LEASE}, $6::float8 as started_at, $7::float8 as finished_at
   ), unchecked as (
     delete from belfry.checkpoints c using gone g where c.shard = $1 and c.job_id = $2 and c.nominal_at = to_timestamp($3::float8 / 1000) and g.shard = c.shard
   ), ${recordEnds({ outcome: OUTCOME.succeeded, result: '$8::json' })}
   select g.has_dependents from gone g`,
)

/** Finishes a run inside a caller's transaction: it is gone and in history when that commits, and live when it does not. */
export async function completeIn(
  tx: Queryable,
  fence: Fence,
  end: { startedAt: Instant; finishedAt: Instant; result: string | null },
): Promise<'ok' | 'lease_lost'> {
  const { shard, jobId, nominalAt, attempt, holder } = fence
  const [row] = await tx.query<[boolean]>(COMPLETE, [
    shard,
    jobId,
    nominalAt,
    attempt,
    holder,
    end.startedAt,
    end.finishedAt,
    end.result,
  ])
  fence.isAwaited = row?.[0] === true
  return row ? 'ok' : 'lease_lost'
}
