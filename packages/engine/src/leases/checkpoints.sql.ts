import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Fence } from './lease.ts'

const SAVE = statement(
  'save_checkpoint',
  `with held as (
     select r.shard, r.job_id, r.nominal_at, r.attempt from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000) and r.attempt = $4 and r.holder = $5 for update
   )
   insert into belfry.checkpoints (nominal_at, job_id, attempt, shard, value)
   select h.nominal_at, h.job_id, h.attempt, h.shard, $6::json from held h
   on conflict (shard, job_id, nominal_at) do update set attempt = excluded.attempt, value = excluded.value
   returning attempt`,
)
const READ = statement(
  'read_checkpoint',
  `select c.value from belfry.checkpoints c where c.shard = $1 and c.job_id = $2 and c.nominal_at = to_timestamp($3::float8 / 1000)`,
)

/** Only the live lease may leave something for the next attempt. */
export async function saveCheckpoint(db: Queryable, fence: Fence, json: string): Promise<'ok' | 'lease_lost'> {
  const { shard, jobId, nominalAt, attempt, holder } = fence
  const rows = await db.query(SAVE, [shard, jobId, nominalAt, attempt, holder, json])
  return rows.length === 1 ? 'ok' : 'lease_lost'
}

export async function readCheckpoint(
  db: Queryable,
  run: { shard: number; jobId: string; nominalAt: Instant },
): Promise<unknown> {
  const [row] = await db.query<[string]>(READ, [run.shard, run.jobId, run.nominalAt])
  return row ? JSON.parse(row[0]) : undefined
}
