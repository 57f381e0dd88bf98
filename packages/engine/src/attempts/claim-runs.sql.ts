import { DELIVERY, isOnce } from '../job/states.ts'
import {
  type Claimed,
  claimedOf,
  LEASED,
  type LeasedRow,
  type Place,
  TAKEN,
  takeLease,
  withSpecs,
} from '../leases/take-lease.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { HAS_NO_LIMIT, type Level, levelArrays, pickRuns } from './pick.ts'

/**
 * Leases ready runs that no limit concerns: the n-th in order of turn goes to the n-th place, and the last place takes all that come
 * after it. A run that may be performed at most once gets a place that is free now ($8 of them) or is left. The places come by ctid:
 * a row that changed under the lock is picked and not leased. What is left is answered too, so that no watermark passes it.
 */
const PLACE = 'least(p.nth, cardinality($5::bigint[]))'
const CLAIM = statement(
  'claim_runs',
  `with ${CLOCK}, ${pickRuns('plain', { columns: 'r.ctid as place, r.turn, r.priority, r.delivery', onlyIf: HAS_NO_LIMIT })},
   placed as materialized (
     select p.place, ($5::bigint[])[${PLACE}] as holder, ($6::int[])[${PLACE}] as lease_ms
     from (select p.*, (row_number() over (order by p.turn))::int as nth from picked p) p
     where p.nth <= $4 and (p.delivery = ${DELIVERY.at_least_once} or p.nth <= $8)
   ), leased as (
     update belfry.runs r set ${takeLease({ holder: 'p.holder', leasedAt: '$7', leaseMs: 'p.lease_ms', queueSlot: 'false' })}
     from placed p where r.ctid = p.place
     returning ${TAKEN}, p.place
   )
   select ${LEASED.text} ${withSpecs('leased')}
   union all
   select ${LEASED.textOf({ priority: 'p.priority', turn: 'p.turn', delivery: 'p.delivery' })} from picked p
   where (select count(*) from picked) > (select count(*) from leased) and p.place not in (select l.place from leased l)`,
)

export interface Claim {
  queueId: number
  now: Instant
  levels: readonly Level[]
  /** How many runs at most. */
  limit: number
  /** In the order in which they are filled; the last one takes all further runs. */
  places: readonly Place[]
  /** So many of the first places are slots that are free now. */
  freePlaces: number
}

export interface ClaimedRuns {
  claimed: Claimed[]
  /** Runs that were picked and are still ready. */
  left: Left[]
}

export interface Left {
  priority: number
  turn: number
  /** It waits for a slot that is free. */
  isOnce: boolean
}

export async function claimRuns(db: Queryable, claim: Claim): Promise<ClaimedRuns> {
  const { queueId, now, levels, limit, places, freePlaces } = claim
  const rows = await db.query<LeasedRow>(CLAIM, [
    queueId,
    ...levelArrays(levels),
    limit,
    places.map(({ holder }) => holder),
    places.map(({ leaseMs }) => leaseMs),
    now,
    freePlaces,
  ])
  // Those that are left come last.
  const end = rows.findIndex((row) => LEASED.get(row, 'jobId') === null)
  const leased = end === -1 ? rows : rows.slice(0, end)
  const left = end === -1 ? [] : rows.slice(end).map(leftOf)
  return { claimed: claimedOf(leased, claim), left }
}

const leftOf = (row: LeasedRow): Left => ({
  priority: LEASED.get(row, 'priority'),
  turn: Number(LEASED.get(row, 'turn')),
  isOnce: isOnce(LEASED.get(row, 'delivery')),
})
