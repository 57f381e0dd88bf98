import { parseRunId, shardOfJob } from '../job/ids.ts'
import { nameOf } from '../job/states.ts'
import { LOG_LEVEL } from '../leases/attempt-logs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const MAX_LINES = 10_000

/** By `attempt_logs_by_run`, in the order of that index; nothing is logged before the nominal time, so older days are left out. */
const GET = statement(
  'get_logs',
  `select l.attempt, l.line, l.level, l.logged_at, l.message from belfry.attempt_logs l
   where l.shard = $1 and l.job_id = $2 and l.nominal_at = to_timestamp($3::float8 / 1000) and l.logged_at >= to_timestamp($4::float8 / 1000)
     and ($5::int is null or l.tenant_id = $5)
   order by l.attempt, l.line limit ${MAX_LINES}`,
)

export interface LogView {
  attempt: number
  line: number
  level: keyof typeof LOG_LEVEL
  loggedAt: Date
  message: string
}

/** The first ten thousand lines of a tenant's run; of anybody's if no tenant is given. */
export async function getLogs(db: Queryable, tenantId: number | null, runId: string): Promise<LogView[]> {
  const run = parseRunId(runId)
  if (run === null) return []
  const { jobId, nominalAt } = run
  const rows = await db.query<[number, number, number, Instant, string]>(GET, [
    shardOfJob(jobId),
    jobId,
    nominalAt,
    nominalAt - DAY_MS,
    tenantId,
  ])
  return rows.map(([attempt, line, level, loggedAt, message]) => ({
    attempt,
    line,
    level: nameOf(LOG_LEVEL, level) ?? 'info',
    loggedAt: new Date(loggedAt),
    message,
  }))
}
