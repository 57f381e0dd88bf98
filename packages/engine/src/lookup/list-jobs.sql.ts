import { jobIdLowerBound, MAX_ID_INSTANT } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { RowOf } from '../store/columns.ts'
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
  UUID,
} from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { readLabelFilter, readRange, readTextFilter, type When } from './filter.ts'
import {
  JOB,
  JOB_STATUS,
  JOB_STATUSES,
  type JobRow,
  type JobViewStatus,
  jobPlaces,
  NEXT_RUN_AT,
} from './job-places.sql.ts'
import { type JobView, jobViewOf } from './job-view.ts'

/** The instant in an id, a day earlier: what has ended of a job stands in the days since. */
const SINCE = `to_timestamp(('x' || translate(substr(c.id::text, 1, 13), '-', ''))::bit(48)::bigint / 1000.0 - 86400)`

/**
 * Newest first, by id: `jobs_by_tenant` and `specs_by_tenant` each give their newest below the cursor, already in order, and
 * no more of them are looked at than `$6`. Only then do the filters decide, each job by its places' primary keys; the
 * planner stops at the limit. The last column says where the scan ended, in a row of its own if nothing was found.
 */
const LIST = statement(
  'list_jobs',
  `with scanned as materialized (
     select c.id, c.shard from (
       (select j.id, j.shard from belfry.jobs j where j.tenant_id = $1 and j.tenant_id > 0 and j.id < $2::uuid and j.id >= $8::uuid order by j.id desc limit $6)
       union all
       (select s.job_id, s.shard from belfry.specs s where s.tenant_id = $1 and s.tenant_id > 0 and s.job_id < $2::uuid and s.job_id >= $8::uuid order by s.job_id desc limit $6)
     ) c order by c.id desc limit $6
   )
   select page.*, ending.id from (
     select case when count(*) = $6 then (select c.id from scanned c order by c.id limit 1) end as id from scanned
   ) ending left join lateral (
     select ${JOB.text}
     from scanned c ${jobPlaces('c.shard', 'c.id', SINCE)}
     where (j.id is not null or s.job_id is not null)
       and ($3::text is null or ${JOB_STATUS} = $3)
       and ($4::text is null or coalesce(j.definition, s.definition) ->> 'queue' = $4)
       and ($5::text is null or coalesce(j.name, s.name) = $5)
       and ($9::text is null or coalesce(j.definition, s.definition) #>> array['labels', $9] is not null
         and ($10::text is null or coalesce(j.definition, s.definition) #>> array['labels', $9] = $10))
       and ($11::float8 = '-Infinity' and $12::float8 = 'Infinity'
         or ${NEXT_RUN_AT} >= to_timestamp($11::float8 / 1000) and ${NEXT_RUN_AT} < to_timestamp($12::float8 / 1000))
       and ($13::text is null or position(lower($13) in lower(coalesce(j.name, s.name))) > 0 or starts_with(c.id::text, lower($13)))
     order by c.id desc limit $7) page on true
   order by page.id desc`,
)

/** A status is found out from history, job by job: fewer are looked at. */
const MAX_SCANNED_FOR_STATUS = 2_000

export interface ListJobs extends PageRequest {
  tenantId: number
  status?: JobViewStatus
  queue?: string
  name?: string
  /** `team`, or `team=ops`. */
  label?: string
  createdFrom?: When
  createdTo?: When
  nextRunFrom?: When
  nextRunTo?: When
  /** Stands in the name, or at the beginning of the id. */
  text?: string
}

const CREATED = { from: 'createdFrom', to: 'createdTo' }
const NEXT_RUN = { from: 'nextRunFrom', to: 'nextRunTo' }

export async function listJobs(db: Queryable, request: ListJobs): Promise<Page<JobView>> {
  const { tenantId, status } = request
  checkWord('status', status, JOB_STATUSES)
  const limit = limitOf(request)
  const label = readLabelFilter(request.label)
  const created = readRange({ from: request.createdFrom, to: request.createdTo }, CREATED)
  const nextRun = readRange({ from: request.nextRunFrom, to: request.nextRunTo }, NEXT_RUN)
  const [before] = readCursor(request, [UUID]) ?? [AFTER_ALL]
  const end = idAt(created.to)
  const rows = await db.query<RowOf<JobRow>>(LIST, [
    tenantId,
    before !== undefined && before < end ? before : end,
    status ?? null,
    readTextFilter('queue', request.queue),
    readTextFilter('name', request.name),
    scanOf(request, limit),
    limit + 1,
    idAt(created.from),
    label.key,
    label.value,
    nextRun.from,
    nextRun.to,
    readTextFilter('text', request.text),
  ])
  const items = rows.filter((row) => JOB.get(row, 'jobId') !== null).map((row) => jobViewOf(JOB.read(row)))
  const [scanEnd] = rows[0] === undefined ? [null] : (JOB.behind(rows[0]) as [string | null])
  return pageOf(items, limit, ({ jobId }) => [jobId], scanEnd === null ? null : [scanEnd])
}

function scanOf({ status, queue, name, label, nextRunFrom, nextRunTo, text }: ListJobs, limit: number): number {
  if (status !== undefined) return Math.max(MAX_SCANNED_FOR_STATUS, limit + 1)
  const isFiltered = [queue, name, label, nextRunFrom, nextRunTo, text].some((filter) => filter !== undefined)
  return isFiltered ? MAX_SCANNED : limit + 1
}

/** Ids sort by the time of their creation: the first that could be made at an instant. */
function idAt(instant: Instant): string {
  if (instant > MAX_ID_INSTANT) return AFTER_ALL
  return jobIdLowerBound(Math.max(0, instant))
}
