import type { Instant } from '../runtime/clock.ts'
import { ids, instants, numbers, texts } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** A line may be written after its run has ended, or after its job was deleted: whose it is says whichever is still there. */
const APPEND = statement(
  'append_attempt_logs',
  `insert into belfry.attempt_logs (nominal_at, logged_at, job_id, attempt, line, shard, level, message, tenant_id)
   select to_timestamp(u.nominal_at / 1000), to_timestamp(u.logged_at / 1000), u.job_id, u.attempt, u.line, u.shard, u.level, u.message,
     coalesce(
       (select s.tenant_id from belfry.specs s where /*shards s*/ s.shard = u.shard and s.job_id = u.job_id),
       (select j.tenant_id from belfry.jobs j where /*shards j*/ j.shard = u.shard and j.id = u.job_id),
       (select r.tenant_id from belfry.runs r
        where /*shards r*/ r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = to_timestamp(u.nominal_at / 1000)),
       0)
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::int[], $6::float8[], $7::smallint[], $8::text[])
     as u (shard, job_id, nominal_at, attempt, line, logged_at, level, message)`,
)

export const LOG_LEVEL = { debug: 0, info: 1, warn: 2, error: 3 } as const

export interface LogLine {
  shard: number
  jobId: string
  nominalAt: Instant
  attempt: number
  line: number
  loggedAt: Instant
  level: keyof typeof LOG_LEVEL
  message: string
}

export async function appendLogs(db: Queryable, lines: readonly LogLine[]): Promise<void> {
  await db.query(APPEND, [
    numbers(lines.map((line) => line.shard)),
    ids(lines.map((line) => line.jobId)),
    instants(lines.map((line) => line.nominalAt)),
    numbers(lines.map((line) => line.attempt)),
    numbers(lines.map((line) => line.line)),
    instants(lines.map((line) => line.loggedAt)),
    numbers(lines.map((line) => LOG_LEVEL[line.level])),
    texts(lines.map((line) => line.message)),
  ])
}
