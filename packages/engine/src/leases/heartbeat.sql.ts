import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK, NOW } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { type Fence, runKey } from './lease.ts'

/** The row `r` of a run is of the attempt that the fence `u` names, one of `fenceArrays`. */
export const IS_OF_FENCE = `r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = to_timestamp(u.nominal_at / 1000)
         and r.attempt = u.attempt and r.holder = u.holder`

/**
 * Extends the leases that are listed, and no others, up to their deadline, and never shortens one: a heartbeat may arrive
 * after the extension of a run that waits for its callback. A lease whose run shall be canceled is reported but not extended:
 * the cancel has set its end. One that changed under the lock is not returned: whoever asked looks again.
 */
const RENEW = statement(
  'renew_leases',
  `with ${CLOCK}, u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder, unnest($6::int[]) as lease_ms
   ), held as (
     select r.ctid, r.job_id, r.nominal_at, r.cancel_requested, r.deadline,
       case when r.cancel_requested then r.lease_until else greatest(r.lease_until, least(to_timestamp((${NOW} + u.lease_ms) / 1000), r.deadline)) end as lease_until
     from u cross join lateral (
       select r.ctid, r.job_id, r.nominal_at, r.cancel_requested, r.lease_until, r.deadline from belfry.runs r
       where ${IS_OF_FENCE} limit 1 for update skip locked) r
   ), renewed as (
     update belfry.runs r set lease_until = h.lease_until
     from held h where r.ctid = h.ctid and not h.cancel_requested
     returning r.job_id, r.nominal_at, false, r.lease_until, r.deadline
   )
   select * from renewed
   union all
   select h.job_id, h.nominal_at, true, h.lease_until, h.deadline from held h where h.cancel_requested`,
)

/** Which of these fences are live: asked about what a batch did not return, since a locked row is passed over. */
const LOOK = statement(
  'look_at_leases',
  `select u.job_id, to_timestamp(u.nominal_at / 1000), r.cancel_requested, r.lease_until, r.deadline
   from (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder) u
   cross join lateral (
     select r.cancel_requested, r.lease_until, r.deadline from belfry.runs r
     where ${IS_OF_FENCE} and r.state = ${RUN_STATE.leased} limit 1) r`,
)

export interface HeldLease {
  jobId: string
  nominalAt: Instant
  cancelRequested: boolean
  leaseUntil: Instant
  /** No renewal goes beyond it. */
  lastUntil: Instant
}

export const fenceArrays = (fences: readonly Fence[]): ArrayValues[] => [
  fences.map((fence) => fence.shard),
  fences.map((fence) => fence.jobId),
  fences.map((fence) => fence.nominalAt),
  fences.map((fence) => fence.attempt),
  fences.map((fence) => fence.holder),
]

type Row = [string, Instant, boolean, Instant, Instant]
const heldOf = ([jobId, nominalAt, cancelRequested, leaseUntil, lastUntil]: Row): HeldLease => ({
  jobId,
  nominalAt,
  cancelRequested,
  leaseUntil,
  lastUntil,
})

export function renewLeases(db: Queryable, fences: readonly Fence[], leaseMs: number): Promise<HeldLease[]> {
  return renewEach(
    db,
    fences,
    fences.map(() => leaseMs),
  )
}

/** Each by a length of its own. */
export async function renewEach(
  db: Queryable,
  fences: readonly Fence[],
  leaseMs: readonly number[],
): Promise<HeldLease[]> {
  return (await db.query<Row>(RENEW, [...fenceArrays(fences), leaseMs])).map(heldOf)
}

export async function lookAtLeases(db: Queryable, fences: readonly Fence[]): Promise<HeldLease[]> {
  return (await db.query<Row>(LOOK, fenceArrays(fences))).map(heldOf)
}

/** The keys of the runs whose leases are live. */
export async function liveAmong(db: Queryable, fences: readonly Fence[]): Promise<Set<string>> {
  return new Set((await lookAtLeases(db, fences)).map(runKey))
}
