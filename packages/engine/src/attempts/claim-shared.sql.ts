import { RUN_STATE } from '../job/states.ts'
import { type Claimed, type ClaimedRow, claimedOf, DEADLINE, LEASED, withDefinition } from '../leases/lease-picked.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Delivery, forLevels, type Level, pickLevel, pickLevels } from './claim.sql.ts'

/** One claim for several lease calls: the n-th run in order of turn goes to the n-th place. */
const PICKED = `r.ctid, r.turn, ${DEADLINE} as deadline`
const LEASE_PLACED = `
   placed as materialized (
     select p.ctid, p.deadline, ($2::bigint[])[p.place] as holder, to_timestamp(($4::float8[])[p.place] / 1000) as lease_until
     from (select p.*, row_number() over (order by p.turn) as place from picked p) p where p.place <= $7
   ), leased as (
     update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = p.holder, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(p.lease_until, p.deadline), deadline = p.deadline
     from placed p where r.ctid = p.ctid
     returning ${LEASED}, r.holder
   ) ${withDefinition('leased', ', t.holder')}`

const SHARE = {
  at_least_once: {
    one: statement('claim_shared_at_least_once', `${pickLevel('at_least_once', PICKED, 'unlimited')}, ${LEASE_PLACED}`),
    several: statement(
      'claim_shared_levels_at_least_once',
      `${pickLevels('at_least_once', PICKED, 'unlimited')}, ${LEASE_PLACED}`,
    ),
  },
  at_most_once: {
    one: statement('claim_shared_at_most_once', `${pickLevel('at_most_once', PICKED, 'unlimited')}, ${LEASE_PLACED}`),
    several: statement(
      'claim_shared_levels_at_most_once',
      `${pickLevels('at_most_once', PICKED, 'unlimited')}, ${LEASE_PLACED}`,
    ),
  },
}
/** The same of a queue whose limit the transaction holds. */
const SHARE_LIMITED = {
  at_least_once: {
    one: statement(
      'claim_shared_limited_at_least_once',
      `${pickLevel('at_least_once', PICKED, 'limited')}, ${LEASE_PLACED}`,
    ),
    several: statement(
      'claim_shared_limited_levels_at_least_once',
      `${pickLevels('at_least_once', PICKED, 'limited')}, ${LEASE_PLACED}`,
    ),
  },
  at_most_once: {
    one: statement(
      'claim_shared_limited_at_most_once',
      `${pickLevel('at_most_once', PICKED, 'limited')}, ${LEASE_PLACED}`,
    ),
    several: statement(
      'claim_shared_limited_levels_at_most_once',
      `${pickLevels('at_most_once', PICKED, 'limited')}, ${LEASE_PLACED}`,
    ),
  },
}

export interface SharedClaim {
  queueId: number
  now: Instant
  levels: readonly Level[]
  delivery: Delivery
  /** As many as are wanted at most, in the order in which they are to be filled. */
  places: readonly { holder: string; leaseUntil: Instant }[]
}

/** From a queue without a limit. */
export const claimShared = (db: Queryable, claim: SharedClaim): Promise<Claimed[]> =>
  share(db, claim, SHARE[claim.delivery])

/** The queue's limit is held by the transaction, and lets as many through as there are places. */
export const claimSharedFromLimited = (tx: Queryable, claim: SharedClaim): Promise<Claimed[]> =>
  share(tx, claim, SHARE_LIMITED[claim.delivery])

async function share(
  db: Queryable,
  { queueId, now, levels, delivery, places }: SharedClaim,
  statements: (typeof SHARE)[Delivery],
): Promise<Claimed[]> {
  const holders = places.map((place) => place.holder)
  const untils = places.map((place) => place.leaseUntil)
  const rows = await db.query<[...ClaimedRow, string]>(
    ...forLevels(levels, statements, [queueId, holders, now, untils], places.length),
  )
  const leaseUntils = new Map(places.map((place) => [place.holder, place.leaseUntil]))
  return rows.map((row) => {
    const holder = row[13]
    const leaseUntil = leaseUntils.get(holder) ?? now
    return claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: delivery === 'at_most_once' })
  })
}
