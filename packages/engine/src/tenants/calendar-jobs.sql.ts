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
  `select j.id, j.status < 2 and ${NAMES_IT} from (
     select j.id, j.status, j.definition from belfry.jobs j where ${EXCLUDES} and j.id > $3::uuid order by j.tenant_id, j.id limit $4) j
   order by j.id`,
)

/** How many active or paused jobs name the calendar; one more than are counted means that there are more. */
export async function countJobsOfCalendar(db: Queryable, tenantId: number, name: string): Promise<number> {
  const [row] = await db.query<[number]>(COUNT, [tenantId, name])
  return row?.[0] ?? 0
}

/** One page of the tenant's jobs that exclude anything, and those of them that name the calendar. */
export async function readJobsOfCalendar(
  db: Queryable,
  { tenantId, name }: { tenantId: number; name: string },
  after: string,
  limit: number,
): Promise<{ jobIds: string[]; next: string | null }> {
  const rows = await db.query<[string, boolean]>(PAGE, [tenantId, name, after, limit])
  return {
    jobIds: rows.filter(([, namesIt]) => namesIt).map(([jobId]) => jobId),
    next: rows.length < limit ? null : (rows.at(-1)?.[0] ?? null),
  }
}
