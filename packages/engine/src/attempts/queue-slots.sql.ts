import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Leases that hold a slot of the queue's limit, none counted beyond it. */
const SLOTS = statement(
  'count_leased_of_queue',
  `select count(*)::int from (
     select from belfry.runs r where r.queue_id = $1 and r.queue_slot and r.state = ${RUN_STATE.leased} limit $2) leased`,
)
/**
 * Leases that are older than the limit get a slot of it too. They are found among all leases, since a lease of a queue without a limit
 * stands in no index of its queue. One that another transaction holds keeps no claim waiting: it is counted beside the others.
 */
const GIVE_SLOTS = statement(
  'give_older_leases_slots',
  `update belfry.runs r set queue_slot = true where r.ctid = any (array(
     select r.ctid from belfry.runs r where r.state = ${RUN_STATE.leased} and r.queue_id = $1 and not r.queue_slot for update skip locked))`,
)
const OLDER = statement(
  'count_leases_without_slot',
  `select count(*)::int from belfry.runs r where r.state = ${RUN_STATE.leased} and r.queue_id = $1 and not r.queue_slot`,
)
const ALL_HAVE_SLOTS = statement(
  'all_leases_have_slots',
  `update belfry.limits l set has_older = false where l.kind = ${LIMIT_KIND.queue} and l.key = $1`,
)

const count = async (tx: Queryable, by: typeof OLDER, values: readonly unknown[]): Promise<number> =>
  (await tx.query<[number]>(by, values))[0]?.[0] ?? 0

/** Live leases of a queue that has a limit. Exact in a transaction that holds the limit. */
export async function countLeased(
  tx: Queryable,
  queueId: number,
  limit: { maxRunning: number; hasOlder: boolean },
): Promise<number> {
  const older = limit.hasOlder ? await count(tx, OLDER, [queueId]) : 0
  return older + (await count(tx, SLOTS, [queueId, limit.maxRunning]))
}

/**
 * The transaction holds the limit: leases from before there was one count from now on like all others. There may be more to come as
 * long as a statement may be under way that does not know of the limit.
 */
export async function giveOlderSlots(tx: Queryable, queueId: number, comes: 'no more' | 'perhaps more'): Promise<void> {
  await tx.execute(GIVE_SLOTS, [queueId])
  if (comes === 'no more' && (await count(tx, OLDER, [queueId])) === 0) await tx.execute(ALL_HAVE_SLOTS, [queueId])
}
