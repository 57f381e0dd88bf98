import { RUN_STATE } from '../job/states.ts'
import {
  type Claimed,
  type ClaimedRow,
  claimedInReceipt,
  claimedOf,
  DEADLINE,
  goneOrLeased,
  IS_PACKABLE,
  LEASED,
  leaving,
  type PackedRow,
  withDefinition,
} from '../leases/lease-picked.ts'
import { packRuns } from '../leases/pack-runs.ts'
import type { Receipt } from '../leases/receipt.ts'
import type { Receipts } from '../leases/receipts.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Database, Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Delivery, forLevels, type Level, pickLevel, pickLevels } from './claim.sql.ts'

/** One claim for several lease calls: the n-th run in order of turn goes to the n-th place. */
const PICKED = `r.ctid, r.turn, ${DEADLINE} as deadline`
const placed = (further: string): string => `placed as materialized (
     select p.ctid, p.deadline, ($2::bigint[])[p.place] as holder, ${further}
     from (select p.*, row_number() over (order by p.turn) as place from picked p) p where p.place <= $7
   )`
const leasePlaced = (leaseUntil: string): string =>
  `update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = p.holder, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(${leaseUntil}, p.deadline), deadline = p.deadline
     from placed p where r.ctid = p.ctid`
const LEASE_PLACED = `
   ${placed('to_timestamp(($4::float8[])[p.place] / 1000) as lease_until')}, leased as (
     ${leasePlaced('p.lease_until')}
     returning ${LEASED}, r.holder
   ) ${withDefinition('leased', ', t.holder')}`

/** So many of a tenant are cheaper in a receipt than as rows, though it has to say whose each of them is; and no more than four tenants' are. */
const MIN_SHARED = 'greatest(8, count(*) over () / 4)'
/** The same where all leases are equally long ($4): many first attempts of one-offs stand in the receipt of $8. */
const PICKED_TO_PACK = `${PICKED}, r.tenant_id, ${IS_PACKABLE} as packable`
const PACK_PLACED = `
   ${placed(`p.packable and count(*) filter (where p.packable) over (partition by p.tenant_id) >= ${MIN_SHARED} as packable`)}, gone as (
     delete from belfry.runs r using placed p where r.ctid = p.ctid and p.packable
     returning ${leaving('r.due_at')}, p.holder
   ), receipt as (
     ${packRuns('gone', { holder: '$8', now: '$3', leaseUntil: '$4' }, 'one-offs of several holders')}
   ), leased as (
     ${leasePlaced('to_timestamp($4::float8 / 1000)')} and not p.packable
     returning ${LEASED}, r.has_dependents, r.holder
   ) ${goneOrLeased('has_dependents', 'holder')}`
const PACK = {
  one: statement(
    'claim_packed_for_several',
    `${pickLevel('at_least_once', PICKED_TO_PACK, 'unlimited')}, ${PACK_PLACED}`,
  ),
  several: statement(
    'claim_packed_levels_for_several',
    `${pickLevels('at_least_once', PICKED_TO_PACK, 'unlimited')}, ${PACK_PLACED}`,
  ),
}

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

/** From a queue without a limit. Runs that may be repeated and are leased for equally long stand in a receipt, if there are many. */
export async function claimForSeveral(
  { db, receipts, random }: { db: Database; receipts: Receipts; random: Random },
  claim: SharedClaim,
): Promise<Claimed[]> {
  const { places, delivery, now } = claim
  const leaseUntil = places[0]?.leaseUntil ?? now
  const isPackable = delivery === 'at_least_once' && places.every((place) => place.leaseUntil === leaseUntil)
  const receipt = isPackable ? receipts.openShared(random, { now, leaseUntil }) : null
  if (receipt === null) return claimShared(db, claim)
  try {
    return await claimPacked(db, claim, { leaseUntil, receipt })
  } finally {
    receipt.closeIfEmpty()
  }
}

async function claimPacked(
  db: Queryable,
  { queueId, now, levels, places }: SharedClaim,
  { leaseUntil, receipt }: { leaseUntil: Instant; receipt: Receipt },
): Promise<Claimed[]> {
  const holders = places.map((place) => place.holder)
  const [packs, values] = forLevels(levels, PACK, [queueId, holders, now, leaseUntil], places.length)
  const rows = await db.query<[...PackedRow, string]>(packs, [...values, receipt.holder])
  return rows.map((row) =>
    claimedInReceipt(row, { queueId, holder: row[15], now, leaseUntil, atMostOnce: false }, receipt),
  )
}

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
    const holder = row[14]
    const leaseUntil = leaseUntils.get(holder) ?? now
    return claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: delivery === 'at_most_once' })
  })
}
