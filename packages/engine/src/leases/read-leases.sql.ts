import { CAUSE, isOnce, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays } from './heartbeat.sql.ts'
import type { Fence, Lease } from './lease.ts'

const READ = statement(
  'read_leases',
  `select u.job_id, to_timestamp(u.nominal_at / 1000), u.attempt, r.tenant_id, r.queue_id, r.job_version, r.failures, r.leased_at, r.lease_until, r.deadline,
     r.delivery, r.one_off, r.cause, r.limit_key
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[]) as u (shard, job_id, nominal_at, attempt, holder)
   cross join lateral (
     select r.tenant_id, r.queue_id, r.job_version, r.failures, r.leased_at, r.lease_until, r.deadline, r.delivery, r.one_off, r.cause, r.limit_key from belfry.runs r
     where r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = to_timestamp(u.nominal_at / 1000)
       and r.attempt = u.attempt and r.holder = u.holder and r.state = ${RUN_STATE.leased} limit 1) r`,
)

type Row = [
  ...[jobId: string, nominalAt: Instant, attempt: number, tenantId: number, queueId: number, jobVersion: number],
  ...[failures: number, leasedAt: Instant, leaseUntil: Instant, deadline: Instant, delivery: number, oneOff: boolean],
  ...[cause: number, limitKey: string | null],
]

export const leaseKey = ({ jobId, nominalAt, attempt }: Pick<Fence, 'jobId' | 'nominalAt' | 'attempt'>): string =>
  `${jobId}.${nominalAt}.${attempt}`

/** What the tables say about leases that another process took, by run; those that are not live are left out. */
export async function readLeases(db: Queryable, fences: readonly Fence[]): Promise<Map<string, Lease>> {
  const byKey = new Map(fences.map((fence) => [leaseKey(fence), fence]))
  const found = new Map<string, Lease>()
  for (const row of await db.query<Row>(READ, fenceArrays(fences))) {
    const key = leaseKey({ jobId: row[0], nominalAt: row[1], attempt: row[2] })
    const fence = byKey.get(key)
    if (fence) found.set(key, leaseOf(row, fence))
  }
  return found
}

const leaseOf = (row: Row, { shard, jobId, nominalAt, attempt, holder }: Fence): Lease => ({
  shard,
  jobId,
  nominalAt,
  attempt,
  holder,
  tenantId: row[3],
  queueId: row[4],
  jobVersion: row[5],
  failures: row[6],
  leasedAt: row[7],
  leaseUntil: row[8],
  deadline: row[9],
  atMostOnce: isOnce(row[10]),
  oneOff: row[11],
  definition: null,
  isBackfill: row[12] === CAUSE.backfill,
  limitKey: row[13],
})
