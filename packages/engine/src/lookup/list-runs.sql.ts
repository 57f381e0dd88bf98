import { DEFAULT_TENANT } from '../job/definition.ts'
import { isJobId } from '../job/ids.ts'
import { FAILURE_CLASS, type FailureClass } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import {
  AFTER_ALL,
  checkWord,
  limitOf,
  MAX_SCANNED,
  type Page,
  type PageRequest,
  pageOf,
  readCursor,
  TIMESTAMP,
  UUID,
} from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { readRange, readTextFilter, type When } from './filter.ts'
import { listRunsOfJob } from './list-runs-of-job.sql.ts'
import { LIVE_RUN, lastAttemptOf, pastColumns, runsOfPage, type SummaryRow } from './run-columns.sql.ts'
import { FAILURE_CLASSES, outcomeOf, RUN_STATUSES, type RunStatus, type RunSummary, statesOf } from './run-view.ts'

/** Live runs of each shard that one page of the tenant `default` looks at. */
const SCANNED_PER_SHARD = 256

/** Where live runs are read from, downwards from the cursor, and where that stopped. */
interface LiveRuns {
  live: string
  horizon: string
}

/** By `runs_by_tenant`, which the planner takes only for a literal. */
const BY_TENANT: LiveRuns = {
  live: `select r.shard, r.job_id, r.nominal_at, r.due_at, r.queue_id, r.state, r.failures from belfry.runs r
     where $2::boolean and r.tenant_id = $1 and r.tenant_id <> ${DEFAULT_TENANT} and (r.job_id, r.nominal_at) < ($3::uuid, to_timestamp($4::float8 / 1000))
     order by r.job_id desc, r.nominal_at desc limit $10`,
  horizon: `select l.job_id, l.nominal_at from live l where (select count(*) from live) = $10 order by l.job_id, l.nominal_at limit 1`,
}
/** The tenant `default` has no such index, which every run of an installation without tenants would pay for. */
const BY_SHARD: LiveRuns = {
  live: `select r.shard, r.job_id, r.nominal_at, r.due_at, r.queue_id, r.state, r.failures
     from generate_series(0, case when $2::boolean then $18::int - 1 else -1 end) as of_shard (shard)
     cross join lateral (
       select r.shard, r.job_id, r.nominal_at, r.due_at, r.queue_id, r.state, r.failures from belfry.runs r
       where r.shard = of_shard.shard and (r.job_id, r.nominal_at) < ($3::uuid, to_timestamp($4::float8 / 1000)) and r.tenant_id = $1
       order by r.job_id desc, r.nominal_at desc limit ${SCANNED_PER_SHARD}) r`,
  horizon: `select l.job_id, l.nominal_at from (
       select l.job_id, l.nominal_at, row_number() over (partition by l.shard order by l.job_id desc, l.nominal_at desc) as place from live l) l
     where l.place = ${SCANNED_PER_SHARD} order by l.job_id desc, l.nominal_at desc limit 1`,
}

/**
 * Live runs first, of the newest job first; then those that are over, the latest end first. One statement, so one snapshot:
 * a run that ends meanwhile is in one of the two.
 *
 * Of the live ones a bounded number is looked at, and nothing is shown below the point where that stopped (the horizon). Over:
 * `attempts_by_tenant`, day by day downwards from the cursor, `$10` rows at most. A run is shown once, by the end that came
 * last, and not at all while it is live again. Its time is its end, or when it is due.
 */
const listText = ({ live, horizon }: LiveRuns): string =>
  `with live as materialized (
     ${live}
   ), horizon as materialized (
     ${horizon}
   ), past as materialized (
     select a.shard, a.job_id, a.nominal_at, a.finished_at, a.number, a.queue_id, a.outcome, a.final, a.failure_class from belfry.attempts a
     where $5::boolean and not exists (select from horizon) and a.tenant_id = $1 and a.tenant_id > 0 and a.finished_at <= to_timestamp($6::float8 / 1000)
       and (a.finished_at, a.job_id, a.nominal_at, a.number) < (to_timestamp($6::float8 / 1000), $7::uuid, to_timestamp($8::float8 / 1000), $9::int)
       and a.finished_at >= to_timestamp($16::float8 / 1000) and a.finished_at < to_timestamp($17::float8 / 1000)
     order by a.finished_at desc, a.job_id desc, a.nominal_at desc, a.number desc limit $10
   ), shown as (
     (select l.shard, l.job_id, l.nominal_at, null::timestamptz as finished_at, 0 as number
      from live l
      where ($11::smallint[] is null or l.state = any($11))
        and ($13::text is null or l.queue_id in (select q.id from belfry.queues q where (q.tenant_id = $1 or q.shared) and q.name = $13))
        and ($15::smallint is null or l.failures > 0 and $15 = (
          select a.failure_class from belfry.attempts a where a.shard = l.shard and a.job_id = l.job_id and a.nominal_at = l.nominal_at
            and a.finished_at >= l.nominal_at - interval '1 day' order by a.finished_at desc limit 1))
        and not exists (select from horizon h where (l.job_id, l.nominal_at) < (h.job_id, h.nominal_at))
        and l.due_at >= to_timestamp($16::float8 / 1000) and l.due_at < to_timestamp($17::float8 / 1000)
      order by l.job_id desc, l.nominal_at desc limit $14)
     union all
     (select p.shard, p.job_id, p.nominal_at, p.finished_at, p.number
      from past p
      where p.final and ($12::smallint is null or p.outcome = $12) and ($15::smallint is null or p.failure_class = $15)
        and ($13::text is null or p.queue_id in (select q.id from belfry.queues q where (q.tenant_id = $1 or q.shared) and q.name = $13))
        and not exists (select from belfry.runs r where r.shard = p.shard and r.job_id = p.job_id and r.nominal_at = p.nominal_at)
        and not exists (select from belfry.attempts later where later.shard = p.shard and later.job_id = p.job_id and later.nominal_at = p.nominal_at
          and later.finished_at > p.finished_at and later.final)
      order by p.finished_at desc, p.job_id desc, p.nominal_at desc, p.number desc limit $14)
   )
   select page.*, h.job_id, h.nominal_at, reached.finished_at, reached.job_id, reached.nominal_at, reached.number
   from (select) one
   left join horizon h on true
   left join lateral (
     select p.finished_at, p.job_id, p.nominal_at, p.number from past p where (select count(*) from past) = $10
     order by p.finished_at, p.job_id, p.nominal_at, p.number limit 1) reached on true
   left join lateral (
     select run.* from shown s cross join lateral (
       select ${LIVE_RUN.text} from belfry.runs r ${lastAttemptOf}
       where s.finished_at is null and r.shard = s.shard and r.job_id = s.job_id and r.nominal_at = s.nominal_at
       union all
       select ${pastColumns} from belfry.attempts a
       where a.shard = s.shard and a.job_id = s.job_id and a.nominal_at = s.nominal_at and a.finished_at = s.finished_at and a.number = s.number
       limit 1
     ) run
     order by s.finished_at desc nulls first, s.job_id desc, s.nominal_at desc, s.number desc limit $14) page on true
   order by page.finished_at desc nulls first, page.job_id desc, page.nominal_at desc, page.attempt desc`

const LIST = statement('list_runs', listText(BY_TENANT))
const LIST_OF_DEFAULT = statement('list_runs_of_default', listText(BY_SHARD))

export interface ListRuns extends PageRequest {
  tenantId: number
  /** How many there are. */
  shards: number
  jobId?: string
  status?: RunStatus
  queue?: string
  /** Of the attempt that ended last. */
  failureClass?: FailureClass
  /** When it ended; of a live run, when it is due. */
  from?: When
  to?: When
}

const PATTERNS = [/^(live|past)$/, TIMESTAMP, UUID, TIMESTAMP, /^\d{1,9}$/]
/** Above every number of an attempt. */
const NUMBER_END = 2_147_483_647
const TIME_END = Number.POSITIVE_INFINITY

/** Hot and past in one list. Of one job: latest nominal time first; else what is live first, then the latest end first. */
export async function listRuns(db: Queryable, request: ListRuns): Promise<Page<RunSummary>> {
  const { tenantId, jobId, status } = request
  checkWord('status', status, RUN_STATUSES)
  checkWord('failureClass', request.failureClass, FAILURE_CLASSES)
  const limit = limitOf(request)
  const filter = {
    states: status === undefined ? null : statesOf(status),
    outcome: status === undefined ? null : outcomeOf(status),
    queue: readTextFilter('queue', request.queue),
    failureClass: request.failureClass === undefined ? null : FAILURE_CLASS[request.failureClass],
    range: readRange(request),
  }
  if (jobId !== undefined) {
    const { cursor } = request
    const page = { tenantId, jobId, limit, ...(cursor === undefined ? {} : { cursor }) }
    return isJobId(jobId) ? listRunsOfJob(db, { ...filter, ...page }) : { items: [], nextCursor: null }
  }
  const { states, outcome, queue, failureClass, range } = filter
  const cursor = readCursor(request, PATTERNS)
  const [phase, finishedAt, atJobId, nominalAt, number] = cursor ?? ['live', '0', AFTER_ALL, '0', '0']
  const isLive = phase === 'live'
  const isFiltered = [status, request.queue, request.failureClass, request.from, request.to].some(
    (one) => one !== undefined,
  )
  const scan = isFiltered ? MAX_SCANNED : Math.min(MAX_SCANNED, limit * 4 + 100)
  const values = [
    tenantId,
    isLive && outcome === null,
    isLive ? atJobId : AFTER_ALL,
    isLive && cursor ? Number(nominalAt) : TIME_END,
    states === null,
    isLive ? TIME_END : Number(finishedAt),
    isLive ? AFTER_ALL : atJobId,
    isLive ? TIME_END : Number(nominalAt),
    isLive ? NUMBER_END : Number(number),
    scan,
    states && states,
    outcome,
    queue,
    limit + 1,
    failureClass,
    range.from,
    range.to,
  ]
  const rows =
    tenantId === DEFAULT_TENANT
      ? await db.query<SummaryRow>(LIST_OF_DEFAULT, [...values, request.shards])
      : await db.query<SummaryRow>(LIST, values)
  return pageOf(runsOfPage(rows), limit, cursorOf, edgeOf(rows[0]))
}

type Cursor = [phase: 'live' | 'past', finishedAt: Instant, jobId: string, nominalAt: Instant, number: number]

const cursorOf = ({ jobId, nominalAt, finishedAt, attempt }: RunSummary): Cursor =>
  finishedAt === null
    ? ['live', 0, jobId, nominalAt.getTime(), 0]
    : ['past', finishedAt.getTime(), jobId, nominalAt.getTime(), attempt]

type Edge = [
  ...[horizonJobId: string | null, horizonNominalAt: Instant | null],
  ...[finishedAt: Instant | null, jobId: string | null, nominalAt: Instant | null, number: number | null],
]

/** Where the scan stopped, if there may be more behind it. */
function edgeOf(row: SummaryRow | undefined): Cursor | null {
  if (row === undefined) return null
  const [horizonJobId, horizonNominalAt, finishedAt, jobId, nominalAt, number] = LIVE_RUN.behind(row) as Edge
  if (horizonJobId !== null && horizonNominalAt !== null) return ['live', 0, horizonJobId, horizonNominalAt, 0]
  if (finishedAt === null || jobId === null || nominalAt === null || number === null) return null
  return ['past', finishedAt, jobId, nominalAt, number]
}
