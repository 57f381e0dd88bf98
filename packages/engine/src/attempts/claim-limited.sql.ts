import { RUN_STATE } from '../job/states.ts'
import { type Claimed, type ClaimedRow, claimedOf, LEASE_PICKED } from '../leases/lease-picked.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Claim, forLevels, PICKED, pickLevel, pickLevels } from './claim.sql.ts'

/** Of a queue whose limit the transaction holds. */
const CLAIM = {
  at_least_once: statement(
    'claim_limited_at_least_once',
    `${pickLevel('at_least_once', PICKED, 'limited')}, ${LEASE_PICKED}`,
  ),
  at_most_once: statement(
    'claim_limited_at_most_once',
    `${pickLevel('at_most_once', PICKED, 'limited')}, ${LEASE_PICKED}`,
  ),
}
const CLAIM_LEVELS = {
  at_least_once: statement(
    'claim_limited_levels_at_least_once',
    `${pickLevels('at_least_once', PICKED, 'limited')}, ${LEASE_PICKED}`,
  ),
  at_most_once: statement(
    'claim_limited_levels_at_most_once',
    `${pickLevels('at_most_once', PICKED, 'limited')}, ${LEASE_PICKED}`,
  ),
}
/** Live leases of a queue, none counted beyond the limit. That the number of a queue is positive lets the planner take `runs_leased_of_queue`. */
const COUNT = statement(
  'count_leased_of_queue',
  `select count(*)::int from (
     select from belfry.runs r where r.queue_id = $1 and r.queue_id > 0 and r.state = ${RUN_STATE.leased} limit $2) leased`,
)

/** The queue's limit is held by the transaction, and lets so many through. */
export async function claimFromLimited(tx: Queryable, claim: Claim): Promise<Claimed[]> {
  const { queueId, holder, now, leaseUntil, levels, limit, delivery } = claim
  const rows = await tx.query<ClaimedRow>(
    ...forLevels(
      levels,
      { one: CLAIM[delivery], several: CLAIM_LEVELS[delivery] },
      [queueId, holder, now, leaseUntil],
      limit,
    ),
  )
  return rows.map((row) =>
    claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: delivery === 'at_most_once' }),
  )
}

export async function countLeased(tx: Queryable, queueId: number, upTo: number): Promise<number> {
  const [row] = await tx.query<[number]>(COUNT, [queueId, upTo])
  return row?.[0] ?? 0
}
