import { ON_LIMIT } from '../concurrency/admission.ts'
import { DELIVERY, isOnce, KEYED, LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import {
  type Claimed,
  type ClaimedRow,
  claimedOf,
  IS_PACKABLE,
  LEASED,
  withDefinition,
} from '../leases/lease-picked.ts'
import { MIN_PACKED, packRuns } from '../leases/pack-runs.ts'
import { packedIn, Receipt } from '../leases/receipt.ts'
import type { Queryable } from '../store/database.ts'
import { heldSlots } from '../store/held-slots.ts'
import { statement } from '../store/statement.ts'
import { type Claim, forLevels, pickLevel, pickLevels } from './claim.sql.ts'

/**
 * Leases runs of keys that have room for all that was picked of them, in one statement: most keys have. Whatever else there is to
 * decide is left to `claimKeyed`: the runs stay ready.
 *
 * Its snapshot is older than its locks, so what it counts is complete only if nobody leased runs of the key in between. Whoever
 * does so changes the key's row. The lock returns the latest version of the row, and by its place the snapshot finds only
 * a version that it can see: of a key that changed in between `granted` has nothing, and nothing of it is leased.
 */
const PICKED = `r.ctid, r.shard, r.limit_key, r.nominal_at, r.job_id,
       r.delivery = ${DELIVERY.at_least_once + KEYED} and ${IS_PACKABLE} as packable`
const TERMS = { holder: '$2', now: '$3', leaseUntil: '$4' }

/**
 * What is listed may have ended. First all of it is taken to be alive; where there is no room then, or the list gets long, what stands
 * in a receipt that is still there; and only where that is too much history is asked.
 */
const LONG_LIST = 64
const IS_SURELY_FREE = `l.max_running > 1 and w.count + cardinality(l.packed_by) <= l.max_running and cardinality(l.packed_by) < ${LONG_LIST}`
/** The list is written anew with each claim of its key: beyond that rows are cheaper. */
const LONGEST_LIST = 1_000
/** None overtakes an older one that waits for a slot; of a limit of 1 none that is alive at all, as in `admit`. */
const OVERTAKES_NOBODY = `not exists (
         select from belfry.runs r
         where paused.has_limited and /*shards r*/ r.shard = h.shard and r.limit_key = h.limit_key and r.state = ${RUN_STATE.limited}
           and r.nominal_at < h.newest and r.queue_id <> all (paused.queue_ids) offset 0)
       and (h.max_running > 1 or not exists (
         select from belfry.runs r
         where /*shards r*/ r.shard = h.shard and r.limit_key = h.limit_key and r.nominal_at < h.newest
           and r.state in (${RUN_STATE.ready}, ${RUN_STATE.leased}, ${RUN_STATE.waiting}, ${RUN_STATE.limited})
           and r.queue_id <> all (paused.queue_ids) offset 0))`

const TAKE_WITH_ROOM = `
   paused as materialized (
     select array(select q.id from belfry.queues q where q.paused_at is not null) as queue_ids,
       exists (select from belfry.runs r where r.state = ${RUN_STATE.limited}) as has_limited,
       exists (select from belfry.runs r where r.state = ${RUN_STATE.leased} and r.limit_key is not null) as has_leased
   ), held as materialized (
     select w.*, l.ctid, l.max_running, l.packed_by, l.packed_jobs,
       ${IS_SURELY_FREE} and not paused.has_leased and not paused.has_limited as is_free
     from paused cross join (
       select p.shard, p.limit_key, count(*) as count, max(p.nominal_at) as newest, array_agg(p.ctid) filter (where p.packable) as packable,
         array_agg(p.ctid) filter (where not p.packable) as others, array_agg(p.job_id) filter (where p.packable) as jobs
       from picked p group by p.shard, p.limit_key) w
     cross join lateral (
       select l.ctid, l.max_running, l.packed_by, l.packed_jobs from belfry.limits l
       where /*shards l*/ l.shard = w.shard and l.kind = ${LIMIT_KIND.key} and l.key = w.limit_key and l.max_running >= w.count
         and l.rate_count is null and l.paused_at is null and l.on_limit <> ${ON_LIMIT.cancel_oldest} limit 1 for update skip locked) l
   ), roomy as materialized (
     select h.ctid, h.jobs, h.packed_by, h.packed_jobs, h.packable, h.others from held h where h.is_free
     union all
     select h.ctid, h.jobs, listed.packed_by, listed.packed_jobs,
       case when listed.count < ${LONGEST_LIST} then h.packable end, case when listed.count < ${LONGEST_LIST} then h.others else h.packable || h.others end
     from paused cross join held h
     cross join lateral (
       select count(*) as count from (
         select from belfry.runs r
         where paused.has_leased and /*shards r*/ r.shard = h.shard and r.limit_key = h.limit_key and r.state = ${RUN_STATE.leased}
         limit h.max_running) r) leased
     cross join lateral (
       select coalesce(array_agg(u.holder), '{}') as packed_by, coalesce(array_agg(u.job_id), '{}') as packed_jobs, count(*) as count
       from (select unnest(h.packed_by) as holder, unnest(h.packed_jobs) as job_id offset 0) u
       where (u.holder in (select c.holder from belfry.receipts c)) is true
     ) listed
     where not h.is_free
       and (h.count + leased.count + listed.count <= h.max_running or listed.count > 0 and h.count + (
         select count(*) from (
           ${heldSlots({ shard: 'h.shard', key: 'h.limit_key', now: '$3' })}
           limit h.max_running) s) <= h.max_running)
       and ${OVERTAKES_NOBODY}
   ), packs as materialized (
     select coalesce(sum(cardinality(r.packable)), 0) >= ${MIN_PACKED} as is_many from roomy r
   ), granted as (
     update belfry.limits l set used_at = greatest(l.used_at, to_timestamp($3::float8 / 1000)),
       packed_by = case when packs.is_many then r.packed_by || array_fill($2::bigint, array[coalesce(cardinality(r.packable), 0)]) else r.packed_by end,
       packed_jobs = case when packs.is_many then r.packed_jobs || r.jobs else r.packed_jobs end
     from packs cross join roomy r where l.ctid = r.ctid
     returning r.packable, r.others
   ), gone as (
     delete from belfry.runs r where r.ctid = any (array(select unnest(g.packable) from packs cross join granted g where packs.is_many))
     returning r.shard, r.job_id, r.nominal_at, r.due_at, r.tenant_id, r.queue_id, r.job_version, r.timeout_ms, r.priority, r.turn, r.cause, r.limit_key, r.delivery,
       r.has_dependents
   ), receipt as (
     ${packRuns('gone', TERMS, 'one-offs with keys')}
   ), leased as (
     update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = to_timestamp(least($4::float8, $3::float8 + r.timeout_ms) / 1000), deadline = to_timestamp(($3::float8 + r.timeout_ms) / 1000)
     where r.ctid = any (array(select unnest(case when packs.is_many then g.others else g.packable || g.others end) from packs cross join granted g))
     returning ${LEASED}, r.limit_key, r.delivery, r.has_dependents
   ) ${withDefinition(
     `(
     select g.shard, g.job_id, g.nominal_at, 1 as attempt, g.tenant_id, g.job_version, 0 as failures, g.timeout_ms, true as one_off, g.priority, g.turn,
       g.due_at, g.cause, g.limit_key, g.delivery, g.has_dependents from gone g
     union all select l.* from leased l)`,
     ', t.limit_key, t.delivery, (select count(*)::int from picked), t.has_dependents',
   )}`

const CLAIM = {
  one: statement('claim_keyed_with_room', `${pickLevel('keyed', PICKED, 'unlimited')}, ${TAKE_WITH_ROOM}`),
  several: statement('claim_keyed_levels_with_room', `${pickLevels('keyed', PICKED, 'unlimited')}, ${TAKE_WITH_ROOM}`),
}

export interface ClaimedWithRoom {
  claimed: Claimed[]
  /** Runs were picked that are not among them, or nobody knows. */
  leavesSome: boolean
}

export async function claimWithRoom(db: Queryable, claim: Omit<Claim, 'delivery'>): Promise<ClaimedWithRoom> {
  const { queueId, holder, now, leaseUntil, levels, limit } = claim
  type Row = [...ClaimedRow, limitKey: string, delivery: number, picked: number, isAwaited: boolean]
  const rows = await db.query<Row>(...forLevels(levels, CLAIM, [queueId, holder, now, leaseUntil], limit))
  const receipt = new Receipt(holder, 'with slots')
  const claimed = rows.map((row) => {
    const one = claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: isOnce(row[15]) })
    const [dueAt, cause, limitKey, isAwaited] = [row[11], row[12], row[14], row[17]]
    one.lease.limitKey = limitKey
    if (dueAt !== null) one.lease.packed = packedIn(receipt, { dueAt, cause, priority: one.priority, isAwaited })
    return one
  })
  return { claimed, leavesSome: rows[0]?.[16] !== rows.length }
}
