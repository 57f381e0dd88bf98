import type { Definition } from '../job/definition.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const EXCLUDE = `j.definition #> '{schedule,exclude}'`
/** Of jobs that have a future; the words are those of the partial index `jobs_that_exclude`. */
const EXCLUDES = `j.tenant_id = $1 and j.tenant_id > 0 and json_typeof(${EXCLUDE}) = 'array'`
/** Guarded once more: the planner may look at an element before it has looked at the type. */
const NAMES_IT = `exists (select from json_array_elements(case when json_typeof(${EXCLUDE}) = 'array' then ${EXCLUDE} else '[]' end) e
       where json_typeof(e.value) = 'object' and e.value ->> 'calendar' = $2)`
export const MAX_COUNTED = 10_000

const COUNT = statement(
  'count_jobs_of_calendar',
  `select count(*)::int from (select from belfry.jobs j where ${EXCLUDES} and j.status < 2 and ${NAMES_IT} limit ${MAX_COUNTED + 1}) j`,
)
const PAGE = statement(
  'read_jobs_of_calendar',
  `select j.id, t.schedule_id, case when t.schedule_id is not null and ${NAMES_IT} then j.definition end from (
     select j.shard, j.id, j.definition from belfry.jobs j where ${EXCLUDES} and j.id > $3::uuid order by j.tenant_id, j.id limit $4
   ) j left join lateral (select t.schedule_id from belfry.timers t where t.shard = j.shard and t.job_id = j.id limit 1) t on true
   order by j.id`,
)

/** How many active or paused jobs name the calendar; one more than are counted means that there are more. */
export async function countJobsOfCalendar(db: Queryable, tenantId: number, name: string): Promise<number> {
  const [row] = await db.query<[number]>(COUNT, [tenantId, name])
  return row?.[0] ?? 0
}

export interface JobOfCalendar {
  jobId: string
  /** By which it is planned. */
  scheduleId: string
  definition: Definition
}

/** One page of the tenant's jobs that exclude anything: those of them that name the calendar and have a next time. */
export async function readJobsOfCalendar(
  db: Queryable,
  { tenantId, name }: { tenantId: number; name: string },
  after: string,
  limit: number,
): Promise<{ jobs: JobOfCalendar[]; next: string | null }> {
  const rows = await db.query<[string, string | null, string | null]>(PAGE, [tenantId, name, after, limit])
  const jobs = rows.flatMap(([jobId, scheduleId, definition]) =>
    scheduleId === null || definition === null ? [] : [{ jobId, scheduleId, definition: JSON.parse(definition) }],
  )
  return { jobs, next: rows.length < limit ? null : (rows.at(-1)?.[0] ?? null) }
}
