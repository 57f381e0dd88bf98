import { gcra } from '../../concurrency/gcra.ts'
import { chargeRate, type LimitRef, lockLimit } from '../../concurrency/shared-limits.sql.ts'
import { RUN_STATE } from '../../job/states.ts'
import { fenceArrays } from '../../leases/heartbeat.sql.ts'
import { byLockOrder, type Fence, runKey } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Database, Transaction } from '../../store/database.ts'
import { statement } from '../../store/statement.ts'

/** `origin_key` is written here alone, on the row of a live lease, and taken away by whoever ends the attempt. */
const ADMIT = statement(
  'admit_calls',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[]) as u (shard, job_id, nominal_at, attempt, holder)
   ), held as (
     select r.ctid from u cross join lateral (
       select r.ctid from belfry.runs r
       where /*shards r*/ r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = to_timestamp(u.nominal_at / 1000)
         and r.attempt = u.attempt and r.holder = u.holder
       limit 1 for update skip locked) r
   )
   update belfry.runs r set origin_key = $6 from held h where r.ctid = h.ctid
   returning r.job_id, r.nominal_at`,
)
const COUNT = statement(
  'count_calls_of_origin',
  `select count(*)::int from (
     select from belfry.runs r where r.origin_key = $1 and r.origin_key is not null and r.state = ${RUN_STATE.leased} limit $2) calls`,
)

/** What became of those that asked: admitted, to be asked again (their rows were locked, or are lost), or turned away. */
export interface Admitted<Asking> {
  admitted: Asking[]
  again: Asking[]
  turnedAway: Asking[]
  /** Why, and when there may be room. */
  shortage: { of: 'slots'; limit: number } | { of: 'rate'; nextAt: Instant; perSecond: number } | null
}

/**
 * Calls of one limited origin, whose leases are rows, in the order in which they came. The limit's row is held from before the
 * count to the commit, so whatever the number of nodes, no more are admitted than it allows. `held`: somebody else does that
 * just now; `none`: there is no limit any more.
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
    const { maxRunning, rate, rateAt } = limit
    const free = maxRunning === null ? asking.length : maxRunning - (await countCalls(tx, ref, maxRunning))
    const slots = Math.min(asking.length, free)
    const rated = rate === null ? null : gcra(rateAt, rate, now, slots)
    const allowed = rated?.allowed ?? slots
    const marked = await mark(tx, ref, asking.slice(0, allowed))
    const admitted = asking.slice(0, allowed).filter(({ lease }) => marked.has(runKey(lease)))
    if (rate !== null && admitted.length > 0) await chargeRate(tx, ref, gcra(rateAt, rate, now, admitted.length).rateAt)
    return {
      admitted,
      again: asking.slice(0, allowed).filter(({ lease }) => !marked.has(runKey(lease))),
      turnedAway: asking.slice(allowed),
      shortage:
        allowed === asking.length
          ? null
          : rate !== null && rated !== null && allowed < slots
            ? { of: 'rate', nextAt: rated.nextAt, perSecond: (rate.limit * 1_000) / rate.periodMs }
            : { of: 'slots', limit: maxRunning ?? 0 },
    }
  })
}

async function countCalls(tx: Transaction, { key }: LimitRef, upTo: number): Promise<number> {
  return (await tx.query<[number]>(COUNT, [key, upTo]))[0]?.[0] ?? 0
}

async function mark(tx: Transaction, { key }: LimitRef, asking: readonly { lease: Fence }[]): Promise<Set<string>> {
  if (asking.length === 0) return new Set()
  const fences = asking.map(({ lease }) => lease).sort(byLockOrder)
  const rows = await tx.query<[string, Instant]>(ADMIT, [...fenceArrays(fences), key])
  return new Set(rows.map(([jobId, nominalAt]) => runKey({ jobId, nominalAt })))
}
