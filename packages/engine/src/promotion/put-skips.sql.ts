import { SKIP_REASON } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { SkipRange } from './decide.ts'

const PUT = statement(
  'put_skips',
  `insert into belfry.skips (from_nominal, to_nominal, decided_at, job_id, tenant_id, job_version, count, shard, reason)
   select to_timestamp(u.from_nominal / 1000), to_timestamp(u.to_nominal / 1000), to_timestamp($5::float8 / 1000), $2, $3, $4, u.count, $1, u.reason
   from unnest($6::float8[], $7::float8[], $8::int[], $9::smallint[]) as u (from_nominal, to_nominal, count, reason)`,
)

/** Records nominal times of one job that have no run, as ranges with their reason: never silence. */
export async function putSkips(
  tx: Queryable,
  job: { shard: number; jobId: string; tenantId: number; jobVersion: number },
  skips: readonly SkipRange[],
  now: Instant,
): Promise<void> {
  if (skips.length === 0) return
  await tx.query(PUT, [
    job.shard,
    job.jobId,
    job.tenantId,
    job.jobVersion,
    now,
    skips.map((skip) => skip.from),
    skips.map((skip) => skip.to),
    skips.map((skip) => skip.count),
    skips.map((skip) => SKIP_REASON[skip.reason]),
  ])
}
