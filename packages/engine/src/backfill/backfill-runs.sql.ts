import { OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Backfill } from './backfill.ts'

const PUT = statement(
  'put_backfill_runs',
  `insert into belfry.backfill_runs (shard, job_id, backfill_id, tenant_id, nominal_at)
   select $1, $2, $3, $4, to_timestamp(u.nominal_at / 1000) from unnest($5::float8[]) as u (nominal_at)`,
)
/**
 * One snapshot over both places, so that a run that ends meanwhile is seen in one of them. A run that was opened again is
 * alive; of one that ended several times the last end counts.
 */
const OPEN = statement(
  'open_backfill_runs',
  `select o.nominal_at,
     exists (select from belfry.runs r where r.shard = o.shard and r.job_id = o.job_id and r.nominal_at = o.nominal_at offset 0),
     (select a.outcome from belfry.attempts a
      where a.shard = o.shard and a.job_id = o.job_id and a.nominal_at = o.nominal_at and a.finished_at >= to_timestamp($3::float8 / 1000) and a.final
      order by a.finished_at desc limit 1)
   from belfry.backfill_runs o where o.shard = $1 and o.backfill_id = $2 and o.outcome is null order by o.nominal_at`,
)
const SETTLE = statement(
  'settle_backfill_runs',
  `update belfry.backfill_runs o set outcome = u.outcome from unnest($3::float8[], $4::smallint[]) as u (nominal_at, outcome)
   where o.shard = $1 and o.job_id = $2 and o.nominal_at = to_timestamp(u.nominal_at / 1000)`,
)
const BACKFILL_OF = statement(
  'backfill_of_run',
  `select o.backfill_id from belfry.backfill_runs o where o.shard = $1 and o.job_id = $2 and o.nominal_at = to_timestamp($3::float8 / 1000)`,
)

export async function putBackfillRuns(tx: Queryable, backfill: Backfill, nominalTimes: readonly Instant[]) {
  const { shard, jobId, id, tenantId } = backfill
  if (nominalTimes.length > 0) await tx.query(PUT, [shard, jobId, id, tenantId, nominalTimes])
}

export interface OpenRun {
  nominalAt: Instant
  isAlive: boolean
  /** How it ended; null: it has not, or nobody knows any more. */
  outcome: number | null
}

/** Its runs that were alive when it was last looked at. */
export async function readOpenRuns(tx: Queryable, { shard, id, createdAt }: Backfill): Promise<OpenRun[]> {
  const rows = await tx.query<[Instant, boolean, number | null]>(OPEN, [shard, id, createdAt - DAY_MS])
  return rows.map(([nominalAt, isAlive, outcome]) => ({ nominalAt, isAlive, outcome }))
}

/** Counts how runs that are over ended. One that left no trace was taken away by somebody. */
export async function settleRuns(tx: Queryable, backfill: Backfill, over: readonly OpenRun[]): Promise<Backfill> {
  if (over.length === 0) return backfill
  const outcomes = over.map(({ outcome }) => outcome ?? OUTCOME.canceled)
  await tx.query(SETTLE, [backfill.shard, backfill.jobId, over.map(({ nominalAt }) => nominalAt), outcomes])
  const counts = { ...backfill.counts }
  for (const outcome of outcomes) {
    if (outcome === OUTCOME.succeeded) counts.succeeded++
    else if (outcome === OUTCOME.failed || outcome === OUTCOME.lost) counts.failed++
    else counts.canceled++
  }
  return { ...backfill, counts }
}

/** The backfill that made a run; null: none did. */
export async function backfillOfRun(
  db: Queryable,
  run: { shard: number; jobId: string; nominalAt: Instant },
): Promise<string | null> {
  const [row] = await db.query<[string]>(BACKFILL_OF, [run.shard, run.jobId, run.nominalAt])
  return row?.[0] ?? null
}
