import { OVERLAP, RUN_STATE, SKIP_REASON } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { ids, instants, numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { LeaseTerms } from './lease-terms.ts'

/**
 * The compare-and-set on `timers.version` feeds the insert into `runs`, in one statement: the second of two promoters
 * changes nothing and inserts nothing. `not exists` decides `overlap: skip` exactly, because every inserter of runs raises
 * the version: a run that this statement's snapshot does not see has made the compare-and-set fail.
 */
const PROMOTE = statement(
  'promote_recurring',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::float8[], $5::float8[], $6::bigint[], $7::bigint[], $8::float8[])
       as u (shard, job_id, version, next_nominal, next_due, turn, holder, deadline)
   ), held as (
     select u.*, t.nominal_at, t.due_at
     from u cross join lateral (
       select t.nominal_at, t.due_at from belfry.timers t
       where /*shards t*/ t.shard = u.shard and t.job_id = u.job_id and t.version = u.version
       limit 1 for update skip locked) t
   ), moved as (
     update belfry.timers t set due_at = to_timestamp(h.next_due / 1000), nominal_at = to_timestamp(h.next_nominal / 1000),
       decided_until = h.nominal_at, version = h.version + 1, remaining_runs = t.remaining_runs - 1
     from held h where t.shard = h.shard and t.job_id = h.job_id
     returning t.shard, t.job_id, t.tenant_id, t.queue_id, t.job_version, t.timeout_ms, t.priority, t.delivery, t.overlap,
       h.nominal_at as run_nominal, h.due_at as run_due, h.turn, h.holder, h.deadline
   ), judged as materialized (
     select m.*, m.overlap = ${OVERLAP.skip} and exists (select from belfry.runs r where r.shard = m.shard and r.job_id = m.job_id) as overlaps
     from moved m
   ), skipped as (
     insert into belfry.skips (from_nominal, to_nominal, decided_at, job_id, tenant_id, job_version, count, shard, reason)
     select j.run_nominal, j.run_nominal + interval '1 ms', to_timestamp($9::float8 / 1000), j.job_id, j.tenant_id, j.job_version, 1, j.shard, ${SKIP_REASON.overlap}
     from judged j where j.overlaps
   ), born as (
     insert into belfry.runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version,
       attempt, failures, timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents)
     select j.run_nominal, j.run_due, j.turn, j.holder,
       to_timestamp(case when j.holder is not null then $9::float8 / 1000 end),
       to_timestamp(case when j.holder is not null then least($10::float8, j.deadline) / 1000 end),
       to_timestamp(case when j.holder is not null then j.deadline / 1000 end),
       j.job_id, j.tenant_id, j.queue_id, j.job_version, case when j.holder is null then 0 else 1 end, 0, j.timeout_ms, j.shard,
       case when j.holder is null then ${RUN_STATE.ready} else ${RUN_STATE.leased} end, j.priority, 0, j.delivery, false, false, false
     from judged j where not j.overlaps
     on conflict do nothing
     returning job_id
   )
   select b.job_id, false from born b union all select j.job_id, true from judged j where j.overlaps`,
)

export type RecurringPromotion = LeaseTerms & {
  shard: number
  jobId: string
  version: number
  nextNominalAt: Instant
  nextDueAt: Instant
  turn: number
}

export interface Promoted {
  jobId: string
  /** The run was not born: another of the job was alive, and a skip says so. */
  overlapped: boolean
}

/** Moves timers on and gives birth to their runs; answers only what really happened. Items are unique and sorted. */
export async function promoteRecurring(
  db: Queryable,
  items: readonly RecurringPromotion[],
  at: { now: Instant; leaseUntil: Instant },
): Promise<Promoted[]> {
  const rows = await db.query<[string, boolean]>(PROMOTE, [
    numbers(items.map((item) => item.shard)),
    ids(items.map((item) => item.jobId)),
    numbers(items.map((item) => item.version)),
    instants(items.map((item) => item.nextNominalAt)),
    instants(items.map((item) => item.nextDueAt)),
    numbers(items.map((item) => item.turn)),
    numbers(items.map((item) => item.holder)),
    instants(items.map((item) => item.deadline)),
    at.now,
    at.leaseUntil,
  ])
  return rows.map(([jobId, overlapped]) => ({ jobId, overlapped }))
}
