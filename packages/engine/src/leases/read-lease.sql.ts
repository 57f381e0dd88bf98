import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Fence } from './lease.ts'

const READ = statement(
  'read_lease',
  `select r.leased_at, r.failures, r.job_version, r.one_off from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000) and r.attempt = $4 and r.holder = $5
     and r.state = ${RUN_STATE.leased}`,
)

export interface LiveLease {
  leasedAt: Instant
  failures: number
  jobVersion: number
  oneOff: boolean
}

/** What the row says about a lease that somebody else took; null if it is no longer live. */
export async function readLease(db: Queryable, fence: Fence): Promise<LiveLease | null> {
  const { shard, jobId, nominalAt, attempt, holder } = fence
  const [row] = await db.query<[Instant, number, number, boolean]>(READ, [shard, jobId, nominalAt, attempt, holder])
  return row ? { leasedAt: row[0], failures: row[1], jobVersion: row[2], oneOff: row[3] } : null
}
