import { CAUSE, isOnce } from '../job/states.ts'
import { columns, type RowOf } from '../store/columns.ts'
import type { Lease } from './lease.ts'

/** A leased run as it stands in `runs`. */
export interface LeasedRun
  extends Required<Omit<Lease, 'atMostOnce' | 'isBackfill' | 'turn' | 'isAwaited' | 'definition' | 'ownPayload'>> {
  delivery: number
  cause: number
}

/** Of the row `r`. */
export const LEASED_RUN = {
  shard: 'r.shard',
  jobId: 'r.job_id',
  nominalAt: 'r.nominal_at',
  attempt: 'r.attempt',
  holder: 'r.holder',
  tenantId: 'r.tenant_id',
  queueId: 'r.queue_id',
  limitKey: 'r.limit_key',
  jobVersion: 'r.job_version',
  failures: 'r.failures',
  leasedAt: 'r.leased_at',
  leaseUntil: 'r.lease_until',
  deadline: 'r.deadline',
  oneOff: 'r.one_off',
  delivery: 'r.delivery',
  cause: 'r.cause',
}

/** With what is needed to perform it. */
type Held = LeasedRun & Pick<Lease, 'definition' | 'ownPayload'>

const HELD = columns<Held>({
  ...LEASED_RUN,
  definition: '(select s.definition from belfry.specs s where r.one_off and s.shard = r.shard and s.job_id = r.job_id)',
  ownPayload: `(select p.payload from belfry.run_payloads p
     where r.cause = ${CAUSE.trigger} and p.shard = r.shard and p.job_id = r.job_id and p.nominal_at = r.nominal_at)`,
})
export type HeldRow = RowOf<Held>

export const HELD_TO_PERFORM = HELD.text
/** Without: it is to be ended. */
export const HELD_TO_END = HELD.textOf(LEASED_RUN)

export function leaseOf(row: HeldRow): Lease {
  const { delivery, cause, ...lease } = HELD.read(row)
  return { ...lease, atMostOnce: isOnce(delivery), isBackfill: cause === CAUSE.backfill }
}
