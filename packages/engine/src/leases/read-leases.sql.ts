import { RUN_STATE } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays, IS_OF_FENCE } from './heartbeat.sql.ts'
import type { Fence, Lease } from './lease.ts'
import { HELD_TO_END, type HeldRow, leaseOf } from './lease-row.ts'

const READ = statement(
  'read_leases',
  `select r.*
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[]) as u (shard, job_id, nominal_at, attempt, holder)
   cross join lateral (
     select ${HELD_TO_END} from belfry.runs r
     where ${IS_OF_FENCE} and r.state = ${RUN_STATE.leased} limit 1) r`,
)

export const leaseKey = ({ jobId, nominalAt, attempt }: Pick<Fence, 'jobId' | 'nominalAt' | 'attempt'>): string =>
  `${jobId}.${nominalAt}.${attempt}`

/** What the tables say about leases that another process took, by run; those that are not live are left out. */
export async function readLeases(db: Queryable, fences: readonly Fence[]): Promise<Map<string, Lease>> {
  const rows = await db.query<HeldRow>(READ, fenceArrays(fences))
  return new Map(rows.map(leaseOf).map((lease) => [leaseKey(lease), lease]))
}
