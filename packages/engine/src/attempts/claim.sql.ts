import { DELIVERY, KEYED, LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import { type Claimed, type ClaimedRow, claimedOf, DEADLINE, LEASE_PICKED } from '../leases/lease-picked.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'

export const PICKED = `r.ctid, ${DEADLINE} as deadline`

/**
 * Whoever does not hold the queue's limit takes nothing from a queue that has one, whatever its node knows: one look-up for the
 * whole statement.
 */
const HAS_NO_LIMIT = `not exists (select from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = $1)`
const GUARD = { unlimited: `and ${HAS_NO_LIMIT}`, limited: '' }

const IS_OF = {
  at_least_once: `= ${DELIVERY.at_least_once}`,
  at_most_once: `= ${DELIVERY.at_most_once}`,
  keyed: `>= ${KEYED}`,
}

/** In order of turn, from the watermark on; rows that somebody else holds are passed over. One priority level. */
export const pickLevel = (kind: keyof typeof IS_OF, columns: string, queue: keyof typeof GUARD): string =>
  `with picked as (
     select ${columns}
     from belfry.runs r
     where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = $5 and r.turn >= $6 ${GUARD[queue]}
     order by r.turn limit $7 for update skip locked
   )`

/** The same over several levels: first where the merged order ends, then no row behind that is touched. */
export const pickLevels = (kind: keyof typeof IS_OF, columns: string, queue: keyof typeof GUARD): string =>
  `with level as (
     select * from unnest($5::smallint[], $6::bigint[]) as level (priority, watermark) where true ${GUARD[queue]}
   ), horizon as (
     select max(first.turn) as turn from (
       select head.turn from level cross join lateral (
         select r.turn from belfry.runs r
         where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = level.priority
           and r.turn >= level.watermark
         order by r.turn limit $7) head
       order by head.turn limit $7) first
   ), picked as (
     select head.*
     from horizon cross join level cross join lateral (
       select ${columns}
       from belfry.runs r
       where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = level.priority
         and r.turn >= level.watermark and r.turn <= horizon.turn
       order by r.turn limit $7 for update skip locked) head
   )`

/** Each kind of delivery has an index of its own, which the planner takes only for a literal. */
const CLAIM = {
  at_least_once: statement(
    'claim_at_least_once',
    `${pickLevel('at_least_once', PICKED, 'unlimited')}, ${LEASE_PICKED}`,
  ),
  at_most_once: statement('claim_at_most_once', `${pickLevel('at_most_once', PICKED, 'unlimited')}, ${LEASE_PICKED}`),
}
const CLAIM_LEVELS = {
  at_least_once: statement(
    'claim_levels_at_least_once',
    `${pickLevels('at_least_once', PICKED, 'unlimited')}, ${LEASE_PICKED}`,
  ),
  at_most_once: statement(
    'claim_levels_at_most_once',
    `${pickLevels('at_most_once', PICKED, 'unlimited')}, ${LEASE_PICKED}`,
  ),
}

/** Runs that may be performed at most once are claimed apart: they are never leased ahead of a free slot. */
export type Delivery = keyof typeof DELIVERY

export interface Level {
  priority: number
  /** No ready run of this level is known to have a smaller turn. */
  watermark: number
}

export interface Claim {
  queueId: number
  holder: string
  now: Instant
  leaseUntil: Instant
  levels: readonly Level[]
  limit: number
  delivery: Delivery
}

export async function claimRuns(db: Queryable, claim: Claim): Promise<Claimed[]> {
  const { queueId, holder, now, leaseUntil, levels, limit, delivery } = claim
  const statements = { one: CLAIM[delivery], several: CLAIM_LEVELS[delivery] }
  const asked = forLevels(levels, statements, [queueId, holder, now, leaseUntil], limit)
  const terms = { queueId, holder, now, leaseUntil, atMostOnce: delivery === 'at_most_once' }
  return (await db.query<ClaimedRow>(...asked)).map((row) => claimedOf(row, terms))
}

/** One level is claimed from by the simpler statement. */
export function forLevels(
  levels: readonly Level[],
  statements: { one: Statement; several: Statement },
  terms: readonly unknown[],
  limit: number,
): [Statement, unknown[]] {
  const [only] = levels
  if (levels.length === 1 && only) return [statements.one, [...terms, only.priority, only.watermark, limit]]
  const priorities = levels.map((level) => level.priority)
  const watermarks = levels.map((level) => level.watermark)
  return [statements.several, [...terms, priorities, watermarks, limit]]
}
