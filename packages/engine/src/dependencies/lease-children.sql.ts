import { shardOfJob } from '../job/ids.ts'
import { DELIVERY, isOnce } from '../job/states.ts'
import type { Lease } from '../leases/lease.ts'
import { claimedInReceipt, DEADLINE, IS_PACKABLE, type PackedRow, packPicked } from '../leases/lease-picked.ts'
import { MIN_PACKED } from '../leases/pack-runs.ts'
import { Receipt } from '../leases/receipt.ts'
import { type LeaseTerms, limitedAmong } from '../promotion/lease-terms.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { HeldChild } from './hold-children.sql.ts'

/** A run that waits for nobody any more, and that this transaction holds. */
export interface FreeChild extends HeldChild {
  jobId: string
}

/** Leaves those alone whose queue has a limit, whatever the node knows. A receipt is for many of one tenant and queue. */
const LEASE = statement(
  'lease_children',
  `with picked as (
     select r.ctid, r.deadline, r.packable and count(*) filter (where r.packable) over (partition by r.tenant_id, r.queue_id) >= ${MIN_PACKED} as packable
     from unnest($5::smallint[], $6::tid[]) as u (shard, place) cross join lateral (
       select r.ctid, r.tenant_id, r.queue_id, ${DEADLINE} as deadline, r.delivery = ${DELIVERY.at_least_once} and ${IS_PACKABLE} as packable
       from belfry.runs r where /*shards r*/ r.ctid = u.place and r.shard = u.shard and r.queue_id <> all (${limitedAmong('$1')}) limit 1) r
   ), ${packPicked('now')}`,
)

/** Children go from waiting for others to an executor of this node, without being ready for anybody else in between. */
export async function leaseChildren(
  tx: Queryable,
  children: readonly FreeChild[],
  { holder, now, leaseUntil }: LeaseTerms,
): Promise<Lease[]> {
  const rows = await tx.query<PackedRow>(LEASE, [
    [...new Set(children.map(({ queueId }) => queueId))],
    ...[holder, now, leaseUntil],
    children.map(({ jobId }) => shardOfJob(jobId)),
    children.map(({ place }) => place),
  ])
  const byJob = new Map(children.map((child) => [child.jobId, child]))
  const receipt = new Receipt(holder)
  return rows.map((row) => {
    const { queueId, delivery } = byJob.get(row[0]) as FreeChild
    const terms = { queueId, holder, now, leaseUntil, atMostOnce: isOnce(delivery) }
    // They were never ready: what stands in the place of their turn is their fairness key.
    const { turn: _, ...lease } = claimedInReceipt(row, terms, receipt).lease
    return lease
  })
}
