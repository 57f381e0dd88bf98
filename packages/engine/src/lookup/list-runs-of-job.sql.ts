import { createdAtOf, shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { MAX_SCANNED, type Page, type PageRequest, pageOf, readCursor, TIMESTAMP } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import type { Range } from './filter.ts'
import { LIVE_RUN, lastAttemptOf, pastColumns, runsOfPage, type SummaryRow } from './run-columns.sql.ts'
import type { RunSummary } from './run-view.ts'

/**
 * Latest nominal time first. The primary key of `runs` and `attempts_by_run` of every day since the job was created each
 * give their latest below the cursor, no more than `$6`; nothing is shown below the point where one of them stopped. A
 * run is shown once: as live, or by the end that came last.
 */
const LIST = statement(
  'list_runs_of_job',
  `with live as materialized (
     select r.shard, r.nominal_at from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.nominal_at < to_timestamp($4::float8 / 1000) order by r.nominal_at desc limit $6
   ), past as materialized (
     select a.nominal_at, a.finished_at, a.number, a.final from belfry.attempts a
     where a.shard = $1 and a.job_id = $2 and a.finished_at >= to_timestamp($5::float8 / 1000) and a.nominal_at < to_timestamp($4::float8 / 1000)
     order by a.nominal_at desc, a.finished_at desc limit $6
   ), horizon as (
     select max(reached.nominal_at) as nominal_at from (
       select min(l.nominal_at) as nominal_at from live l having count(*) = $6
       union all select min(p.nominal_at) from past p having count(*) = $6) reached
   ), shown as (
     select l.nominal_at, null::timestamptz as finished_at, 0 as number from live l
     union all
     (select distinct on (p.nominal_at) p.nominal_at, p.finished_at, p.number from past p
      where p.final and not exists (select from live l where l.nominal_at = p.nominal_at)
      order by p.nominal_at desc, p.finished_at desc, p.number desc)
   )
   select page.*, h.nominal_at from horizon h left join lateral (
     select run.* from (
       select s.nominal_at as key, s.finished_at as ended_at, s.number from shown s
       where h.nominal_at is null or s.nominal_at >= h.nominal_at order by s.nominal_at desc offset 0
     ) s cross join lateral (
       select ${LIVE_RUN.text} from belfry.runs r ${lastAttemptOf}
       where s.ended_at is null and r.shard = $1 and r.job_id = $2 and r.nominal_at = s.key and r.tenant_id = $3
         and ($7::smallint[] is null or r.state = any($7)) and $8::smallint is null
       union all
       select ${pastColumns} from belfry.attempts a
       where a.shard = $1 and a.job_id = $2 and a.nominal_at = s.key and a.finished_at = s.ended_at and a.number = s.number and a.tenant_id = $3
         and ($8::smallint is null or a.outcome = $8) and $7::smallint[] is null
       limit 1
     ) run
     where ($9::text is null or run.queue = $9) and ($11::smallint is null or run.failure_class = $11)
       and coalesce(run.finished_at, run.due_at) >= to_timestamp($12::float8 / 1000) and coalesce(run.finished_at, run.due_at) < to_timestamp($13::float8 / 1000)
     order by s.key desc limit $10) page on true
   order by page.nominal_at desc`,
)

export interface RunsOfJob extends PageRequest {
  tenantId: number
  jobId: string
  limit: number
  states: readonly number[] | null
  outcome: number | null
  queue: string | null
  failureClass: number | null
  range: Range
}

export async function listRunsOfJob(db: Queryable, request: RunsOfJob): Promise<Page<RunSummary>> {
  const { tenantId, jobId, states, outcome, queue, failureClass, range, limit } = request
  const [before] = readCursor(request, [TIMESTAMP]) ?? []
  const rows = await db.query<SummaryRow>(LIST, [
    shardOfJob(jobId),
    jobId,
    tenantId,
    before === undefined ? Number.POSITIVE_INFINITY : Number(before),
    createdAtOf(jobId) - DAY_MS,
    MAX_SCANNED,
    states && states,
    outcome,
    queue,
    limit + 1,
    failureClass,
    range.from,
    range.to,
  ])
  const items = runsOfPage(rows)
  const [horizon] = rows[0] === undefined ? [null] : (LIVE_RUN.behind(rows[0]) as [Instant | null])
  return pageOf(items, limit, ({ nominalAt }) => [nominalAt.getTime()], horizon === null ? null : [horizon])
}
