import { gcra } from '../../concurrency/gcra.ts'
import { chargeRate, type LimitRef, lockLimit, openLimit } from '../../concurrency/shared-limits.sql.ts'
import { timesInLine } from '../../concurrency/times-in-line.ts'
import { RUN_STATE } from '../../job/states.ts'
import { fenceArrays, IS_OF_FENCE } from '../../leases/heartbeat.sql.ts'
import { byLockOrder, type Fence, runKey } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Database, Queryable, Transaction } from '../../store/database.ts'
import { statement } from '../../store/statement.ts'
import { LONGEST_AWAY_MS } from './return-line.ts'

/** Of a live lease `gate_key` is written here alone; the end of the attempt takes it away. */
const ADMIT = statement(
  'admit_calls',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[]) as u (shard, job_id, nominal_at, attempt, holder)
   ), held as (
     select r.ctid from u cross join lateral (
       select r.ctid from belfry.runs r
       where ${IS_OF_FENCE} limit 1 for update skip locked) r
   )
   update belfry.runs r set gate_key = $6 from held h where r.ctid = h.ctid
   returning r.job_id, r.nominal_at`,
)
/** By `runs_at_gate`: a condition `state = leased` would let the planner take the index of all leases. */
const COUNT = statement(
  'count_calls_of_origin',
  `select count(*)::int from (
     select from belfry.runs r where r.gate_key = $1 and r.state between ${RUN_STATE.leased} and ${RUN_STATE.leased} limit $2) calls`,
)

/** What became of those that asked: admitted, to be asked again (their rows were locked, or are lost), or turned away. */
export interface Admitted<Asking> {
  admitted: Asking[]
  again: Asking[]
  turnedAway: Asking[]
  /** Why: all slots are taken, or the rate is used up, and each has been given the time at which it may start. */
  shortage: { of: 'slots'; limit: number } | { of: 'rate'; times: readonly number[] } | null
}

/**
 * Calls of one limited origin, whose leases are rows, in the order in which they came. The limit's row is held from before the
 * count to the commit, so whatever the number of nodes, no more are admitted than it allows. Of an origin `used_at` is the last
 * time that was given to a run that waits for the rate: those of all nodes stand in one line. `held`: another
 * transaction does that just now; `none`: there is no limit any more.
 */
export function admitCalls<Asking extends { lease: Fence }>(
  db: Database,
  ref: LimitRef,
  asking: readonly Asking[],
  now: Instant,
): Promise<Admitted<Asking> | 'held' | 'none'> {
  return db.transaction(async (tx) => {
    const limit = await lockLimit(tx, ref)
    if (typeof limit === 'string') return limit
    const { maxRunning, rate, rateAt, usedAt } = limit
    const free = maxRunning === null ? asking.length : maxRunning - (await countCalls(tx, ref.key, maxRunning))
    const slots = Math.max(0, Math.min(asking.length, free))
    const allowed = rate === null ? slots : gcra(rateAt, rate, now, slots).allowed
    const marked = await mark(tx, ref, asking.slice(0, allowed))
    const admitted = asking.slice(0, allowed).filter(({ lease }) => marked.has(runKey(lease)))
    const again = asking.slice(0, allowed).filter(({ lease }) => !marked.has(runKey(lease)))
    const turnedAway = asking.slice(allowed)
    const found = { admitted, again, turnedAway }
    const charged = rate === null ? rateAt : gcra(rateAt, rate, now, admitted.length).rateAt
    if (charged !== rateAt) await chargeRate(tx, ref, charged)
    if (turnedAway.length === 0) return { ...found, shortage: null }
    if (rate === null || allowed === slots) return { ...found, shortage: { of: 'slots', limit: maxRunning ?? 0 } }
    const line = { rate, rateAt: charged, usedAt, now }
    const times = timesInLine(line, new Array<number>(turnedAway.length).fill(1))
    await openLimit(tx, ref, Math.min(Math.ceil(times.at(-1) ?? now), now + LONGEST_AWAY_MS))
    return { ...found, shortage: { of: 'rate', times } }
  })
}

/** Live leases that hold a slot of the origin, counted no further than that. */
export async function countCalls(db: Queryable, key: string, upTo: number): Promise<number> {
  return (await db.query<[number]>(COUNT, [key, upTo]))[0]?.[0] ?? 0
}

async function mark(tx: Transaction, { key }: LimitRef, asking: readonly { lease: Fence }[]): Promise<Set<string>> {
  if (asking.length === 0) return new Set()
  const fences = asking.map(({ lease }) => lease).sort(byLockOrder)
  const rows = await tx.query<[string, Instant]>(ADMIT, [...fenceArrays(fences), key])
  return new Set(rows.map(([jobId, nominalAt]) => runKey({ jobId, nominalAt })))
}
