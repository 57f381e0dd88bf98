import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

export const MAX_LOG_LINES = 1_000

/**
 * A line that has a number is stored once, however often it is sent; one without comes after those that are there. Nothing is
 * logged before the nominal time, so older days are not looked at.
 */
const APPEND = statement(
  'append_attempt_logs',
  `insert into belfry.attempt_logs (nominal_at, logged_at, job_id, attempt, line, shard, level, message, tenant_id)
   select n.nominal_at, n.logged_at, n.job_id, n.attempt, n.line, n.shard, n.level, n.message, n.tenant_id
   from (
     select to_timestamp(u.nominal_at / 1000) as nominal_at, to_timestamp(u.logged_at / 1000) as logged_at, u.job_id, u.attempt, u.shard, u.level,
       u.message, u.tenant_id, u.line is not null as is_numbered, coalesce(u.line, greatest(max(u.line) over of_attempt, (
         select coalesce(max(l.line), 0) from belfry.attempt_logs l
         where l.shard = u.shard and l.job_id = u.job_id and l.nominal_at = to_timestamp(u.nominal_at / 1000) and l.attempt = u.attempt
           and l.tenant_id = u.tenant_id
           and l.logged_at >= to_timestamp(u.nominal_at / 1000) - interval '1 day')) + count(*) filter (where u.line is null) over (of_attempt order by u.n))::int as line
     from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::int[], $6::float8[], $7::smallint[], $8::text[], $9::int[]) with ordinality
       as u (shard, job_id, nominal_at, attempt, line, logged_at, level, message, tenant_id, n)
     window of_attempt as (partition by u.job_id, u.nominal_at, u.attempt)) n
   where n.line <= ${MAX_LOG_LINES} and not (n.is_numbered and exists (
     select from belfry.attempt_logs l
     where l.shard = n.shard and l.job_id = n.job_id and l.nominal_at = n.nominal_at and l.attempt = n.attempt and l.line = n.line
       and l.tenant_id = n.tenant_id
       and l.logged_at >= n.nominal_at - interval '1 day'))`,
)

export const LOG_LEVEL = { debug: 0, info: 1, warn: 2, error: 3 } as const
export type LogLevel = keyof typeof LOG_LEVEL

export interface LogLine {
  shard: number
  jobId: string
  nominalAt: Instant
  attempt: number
  tenantId: number
  /** Null: after those that are there. */
  line: number | null
  loggedAt: Instant
  level: LogLevel
  message: string
}

export async function appendLogs(db: Queryable, lines: readonly LogLine[]): Promise<void> {
  await db.query(APPEND, [
    lines.map((line) => line.shard),
    lines.map((line) => line.jobId),
    lines.map((line) => line.nominalAt),
    lines.map((line) => line.attempt),
    lines.map((line) => line.line),
    lines.map((line) => line.loggedAt),
    lines.map((line) => LOG_LEVEL[line.level]),
    lines.map((line) => line.message),
    lines.map((line) => line.tenantId),
  ])
}
