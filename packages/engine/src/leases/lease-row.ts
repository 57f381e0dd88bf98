import { OVERTIME_MS } from '../job/overtime.ts'
import { CAUSE, DELIVERY, KEYED } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Lease } from './lease.ts'

/** Of a leased run as it stands in `runs`, the row `r`. */
export const LEASED_RUN = {
  shard: column<number>('r.shard'),
  jobId: column<string>('r.job_id'),
  nominalAt: column<Instant>('r.nominal_at'),
  attempt: column<number>('r.attempt'),
  holder: column<string>('r.holder'),
  tenantId: column<number>('r.tenant_id'),
  queueId: column<number>('r.queue_id'),
  limitKey: column<string | null>('r.limit_key'),
  jobVersion: column<number>('r.job_version'),
  failures: column<number>('r.failures'),
  failureClass: column<number | null>('r.failure_class'),
  timeoutMs: column<number>('r.timeout_ms'),
  leasedAt: column<Instant>('r.leased_at'),
  leaseUntil: column<Instant>('r.lease_until'),
  deadline: column<Instant>(`r.deadline - ${OVERTIME_MS} * interval '1 ms'`),
  oneOff: column<boolean>('r.one_off'),
  atMostOnce: column<boolean>(`r.delivery % ${KEYED} = ${DELIVERY.at_most_once}`),
  isBackfill: column<boolean>(`r.cause = ${CAUSE.backfill}`),
}

/** With what is needed to perform it. */
const HELD = columns({
  ...LEASED_RUN,
  definition: column<string | null>(
    '(select s.definition from belfry.specs s where r.one_off and s.shard = r.shard and s.job_id = r.job_id)',
  ),
  ownPayload: column<string | null>(`(select p.payload from belfry.run_payloads p
     where r.cause = ${CAUSE.trigger} and p.shard = r.shard and p.job_id = r.job_id and p.nominal_at = r.nominal_at)`),
})
export type HeldRow = RowOf<Read<typeof HELD>>

export const HELD_TO_PERFORM = HELD.text
/** Without: it is to be ended. */
export const HELD_TO_END = HELD.textOf(LEASED_RUN)

export const leaseOf = (row: HeldRow): Lease => HELD.read(row)
