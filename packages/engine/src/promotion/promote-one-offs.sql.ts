import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { ids, instants, numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { LeaseTerms } from './lease-terms.ts'

/** A one-off has no next time: its timer goes and its run comes, in one statement. Leased ones come with their spec. */
const PROMOTE = statement(
  'promote_one_offs',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::bigint[], $5::bigint[], $6::float8[])
       as u (shard, job_id, version, turn, holder, deadline)
   ), held as (
     select u.shard, u.job_id, u.turn, u.holder, u.deadline
     from u cross join lateral (
       select from belfry.timers t
       where /*shards t*/ t.shard = u.shard and t.job_id = u.job_id and t.version = u.version
       limit 1 for update skip locked) t
   ), gone as (
     delete from belfry.timers t using held h where t.shard = h.shard and t.job_id = h.job_id
     returning t.nominal_at, t.due_at, t.shard, t.job_id, t.tenant_id, t.queue_id, t.job_version, t.timeout_ms, t.priority, t.delivery,
       h.turn, h.holder, h.deadline
   ), born as (
     insert into belfry.runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version,
       attempt, failures, timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents)
     select g.nominal_at, g.due_at, g.turn, g.holder,
       to_timestamp(case when g.holder is not null then $7::float8 / 1000 end),
       to_timestamp(case when g.holder is not null then least($8::float8, g.deadline) / 1000 end),
       to_timestamp(case when g.holder is not null then g.deadline / 1000 end),
       g.job_id, g.tenant_id, g.queue_id, g.job_version, case when g.holder is null then 0 else 1 end, 0, g.timeout_ms, g.shard,
       case when g.holder is null then ${RUN_STATE.ready} else ${RUN_STATE.leased} end, g.priority, ${CAUSE.create}, g.delivery, true, false, false
     from gone g
     on conflict do nothing
     returning shard, job_id, holder
   )
   select b.job_id, s.definition
   from born b left join lateral (
     select s.definition from belfry.specs s where s.shard = b.shard and s.job_id = b.job_id limit 1) s on b.holder is not null`,
)

export type OneOffPromotion = LeaseTerms & {
  shard: number
  jobId: string
  version: number
  turn: number
}

/** Answers the runs that were born, with their definition where they were born leased. Items are unique and sorted. */
export async function promoteOneOffs(
  db: Queryable,
  items: readonly OneOffPromotion[],
  at: { now: Instant; leaseUntil: Instant },
): Promise<{ jobId: string; definition: string | null }[]> {
  const rows = await db.query<[string, string | null]>(PROMOTE, [
    numbers(items.map((item) => item.shard)),
    ids(items.map((item) => item.jobId)),
    numbers(items.map((item) => item.version)),
    numbers(items.map((item) => item.turn)),
    numbers(items.map((item) => item.holder)),
    instants(items.map((item) => item.deadline)),
    at.now,
    at.leaseUntil,
  ])
  return rows.map(([jobId, definition]) => ({ jobId, definition }))
}
