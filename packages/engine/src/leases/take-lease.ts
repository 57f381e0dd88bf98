import { shardOfJob } from '../job/ids.ts'
import { OVERTIME_MS } from '../job/overtime.ts'
import { CAUSE, isOnce, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import { NOW } from '../store/database-clock.ts'
import type { Lease } from './lease.ts'

/** How a statement, which begins with `CLOCK`, writes the terms of its leases. */
interface LeaseTexts {
  holder: string
  /** What the node says: it names the claim. */
  leasedAt: string
  leaseMs: string
  /** Whether the lease holds a slot of its queue's limit. */
  queueSlot: string
}

/** What a lease writes into the row of a ready run `r`: the only text. */
export const takeLease = ({ holder, leasedAt, leaseMs, queueSlot }: LeaseTexts): string =>
  `state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = ${holder}, leased_at = to_timestamp(${leasedAt}::float8 / 1000),
       lease_until = to_timestamp((${NOW} + least(${leaseMs}, r.timeout_ms + ${OVERTIME_MS})) / 1000),
       deadline = to_timestamp((${NOW} + r.timeout_ms + ${OVERTIME_MS}) / 1000), queue_slot = ${queueSlot}`

/** What takes a lease out of the row of its run: the only text. */
export const NO_LEASE =
  'holder = null, leased_at = null, lease_until = null, deadline = null, begun_at = null, status_code = null'

/** What a leasing update hands on of the rows `r` that it took. */
export const TAKEN = `r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, r.job_version, r.failures, r.failure_class, r.timeout_ms, r.one_off, r.priority, r.turn, r.cause,
       r.delivery, r.limit_key, r.holder, r.lease_until`

/** A leased run as a statement answers it, with what a one-off is to do; a recurring job's definition is remembered by version. */
export const LEASED = columns({
  jobId: column<string>('t.job_id'),
  nominalAt: column<Instant>('t.nominal_at'),
  attempt: column<number>('t.attempt'),
  tenantId: column<number>('t.tenant_id'),
  jobVersion: column<number>('t.job_version'),
  failures: column<number>('t.failures'),
  failureClass: column<number | null>('t.failure_class'),
  timeoutMs: column<number>('t.timeout_ms'),
  oneOff: column<boolean>('t.one_off'),
  priority: column<number>('t.priority'),
  turn: column<string>('t.turn'),
  cause: column<number>('t.cause'),
  delivery: column<number>('t.delivery'),
  limitKey: column<string | null>('t.limit_key'),
  holder: column<string>('t.holder'),
  leaseUntil: column<Instant>('t.lease_until'),
  definition: column<string | null>('s.definition'),
  ownPayload: column<string | null>(`case when t.cause = ${CAUSE.trigger} then (
       select p.payload from belfry.run_payloads p where p.shard = t.shard and p.job_id = t.job_id and p.nominal_at = t.nominal_at) end`),
})
export type LeasedRow = RowOf<Read<typeof LEASED>>

/** The rows `t` of a leasing update, with the specs of one-offs. */
export const withSpecs = (taken: string): string =>
  `from ${taken} t left join lateral (
     select s.definition from belfry.specs s where s.shard = t.shard and s.job_id = t.job_id limit 1) s on t.one_off`

/** Whom a run is leased to, and for how long at most. */
export interface Place {
  holder: string
  leaseMs: number
}

export interface Claimed {
  lease: Lease
  priority: number
  turn: number
}

/** Reads what a claim of this instant leased from one queue. */
export function claimedOf(rows: readonly LeasedRow[], { queueId, now }: { queueId: number; now: Instant }): Claimed[] {
  return rows.map((row) => {
    const jobId = LEASED.get(row, 'jobId')
    const timeoutMs = LEASED.get(row, 'timeoutMs')
    const turn = Number(LEASED.get(row, 'turn'))
    const lease: Lease = {
      shard: shardOfJob(jobId),
      jobId,
      nominalAt: LEASED.get(row, 'nominalAt'),
      attempt: LEASED.get(row, 'attempt'),
      holder: LEASED.get(row, 'holder'),
      tenantId: LEASED.get(row, 'tenantId'),
      queueId,
      limitKey: LEASED.get(row, 'limitKey'),
      jobVersion: LEASED.get(row, 'jobVersion'),
      failures: LEASED.get(row, 'failures'),
      failureClass: LEASED.get(row, 'failureClass'),
      timeoutMs,
      leasedAt: now,
      leaseUntil: LEASED.get(row, 'leaseUntil'),
      deadline: now + timeoutMs,
      atMostOnce: isOnce(LEASED.get(row, 'delivery')),
      oneOff: LEASED.get(row, 'oneOff'),
      definition: LEASED.get(row, 'definition'),
      ownPayload: LEASED.get(row, 'ownPayload'),
      isBackfill: LEASED.get(row, 'cause') === CAUSE.backfill,
      turn,
    }
    return { lease, priority: LEASED.get(row, 'priority'), turn }
  })
}
