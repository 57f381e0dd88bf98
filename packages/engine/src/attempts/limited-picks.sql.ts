import type { Candidate } from '../concurrency/admission.ts'
import { RUN_STATE } from '../job/states.ts'
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
import type { ArrayValues } from '../store/arrays.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { HAS_NO_LIMIT, type Kind, type Level, levelArrays, pickRuns } from './pick.ts'

/**
 * Picking and leasing as two statements of one transaction, which looks at limits in between. A row that is held does not move, so
 * its ctid names it in the statements that follow.
 */
const PICKED = columns({
  place: column<string>('r.ctid as place'),
  shard: column<number>('r.shard'),
  key: column<string | null>('r.limit_key'),
  nominalAt: column<Instant>('r.nominal_at'),
  jobId: column<string>('r.job_id'),
  attempt: column<number>('r.attempt'),
  turn: column<string>('r.turn'),
  priority: column<number>('r.priority'),
  delivery: column<number>('r.delivery'),
})
type Row = RowOf<Read<typeof PICKED>>
const MAY_PICK = `($5::boolean or ${HAS_NO_LIMIT})`
const PICK: Record<Kind, ReturnType<typeof statement>> = {
  plain: statement(
    'pick_runs',
    `with ${pickRuns('plain', { columns: PICKED.text, onlyIf: MAY_PICK })} select p.* from picked p order by p.turn`,
  ),
  /** Keys that another transaction holds are passed over when looking further. */
  keyed: statement(
    'pick_keyed_runs',
    `with ${pickRuns('keyed', { columns: PICKED.text, onlyIf: MAY_PICK, only: '(r.limit_key = any($6::bigint[])) is not true' })}
   select p.* from picked p order by p.turn`,
  ),
}
const LEASE = statement(
  'lease_picked_runs',
  `with ${CLOCK}, u as (
     select * from unnest($1::tid[], $2::bigint[], $3::int[]) as u (place, holder, lease_ms)
   ), limited as (
     update belfry.runs r set state = ${RUN_STATE.limited} where r.ctid = any ($6::tid[])
   ), leased as (
     update belfry.runs r set ${takeLease({ holder: 'u.holder', leasedAt: '$4', leaseMs: 'u.lease_ms', queueSlot: '$5::boolean' })}
     from u where r.ctid = u.place
     returning ${TAKEN}
   ) select ${LEASED.text} ${withSpecs('leased')}`,
)

/** A ready run that this transaction holds. */
export interface PickedRun extends Candidate, Omit<Read<typeof PICKED>, 'attempt' | 'turn'> {
  turn: number
}

export interface Pick {
  queueId: number
  levels: readonly Level[]
  limit: number
  /** The transaction holds the limit of the queue; if it does not, nothing is picked from a queue that has one. */
  isQueueHeld: boolean
  exceptKeys: readonly string[]
}

/** In order of turn. */
export async function pick(tx: Queryable, kind: Kind, pick: Pick): Promise<PickedRun[]> {
  const { queueId, levels, limit, isQueueHeld, exceptKeys } = pick
  const values = [queueId, ...levelArrays(levels), limit, isQueueHeld]
  const rows = await tx.query<Row>(PICK[kind], kind === 'keyed' ? [...values, exceptKeys] : values)
  return rows.map((row) => ({
    place: PICKED.get(row, 'place'),
    shard: PICKED.get(row, 'shard'),
    key: PICKED.get(row, 'key'),
    nominalAt: PICKED.get(row, 'nominalAt'),
    jobId: PICKED.get(row, 'jobId'),
    hasBegun: PICKED.get(row, 'attempt') > 0,
    cost: 1,
    turn: Number(PICKED.get(row, 'turn')),
    priority: PICKED.get(row, 'priority'),
    delivery: PICKED.get(row, 'delivery'),
  }))
}

export const placesOf = (runs: readonly PickedRun[]): ArrayValues => runs.map(({ place }) => place)

/** Leases runs to the places, one each, and moves others aside until there is a slot for them. */
export async function leasePicked(
  tx: Queryable,
  runs: { lease: readonly PickedRun[]; limit: readonly PickedRun[] },
  to: { queueId: number; now: Instant; places: readonly Place[]; isQueueHeld: boolean },
): Promise<Claimed[]> {
  if (runs.lease.length === 0 && runs.limit.length === 0) return []
  const taken = to.places.slice(0, runs.lease.length)
  const rows = await tx.query<LeasedRow>(LEASE, [
    placesOf(runs.lease),
    taken.map(({ holder }) => holder),
    taken.map(({ leaseMs }) => leaseMs),
    to.now,
    to.isQueueHeld,
    placesOf(runs.limit),
  ])
  return claimedOf(rows, to)
}
