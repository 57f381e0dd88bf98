import { SUBJECT } from '../audit/record-change.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { CalendarChange, NamedCalendar } from './explain-timeline.ts'
import type { Doer } from './explanation.ts'

/** Who canceled a run is written in its own transaction; a queue is purged in several, each with its row. */
const NEAR = `c.changed_at >= to_timestamp((u.at - 1000) / 1000) and c.changed_at <= to_timestamp((u.at + 1000) / 1000)`

/** Times are decided together when they are late: the run of a newer one has its due time from the same decision. */
const DECIDED_WITH = (run: 'r' | 'a'): string =>
  `${run}.nominal_at > to_timestamp(u.at / 1000) and ${run}.nominal_at <= to_timestamp(u.decided_at / 1000)
         and ${run}.due_at = to_timestamp(u.decided_at / 1000)`

/**
 * Why a time was skipped for another run: the newest of the times that were decided with it became one, or else one was
 * alive. That is of those for an earlier time the last one that is still there, or that ended later than the decision.
 */
const ALIVE_THEN = statement(
  'explain_overlaps',
  `select u.at, alive.nominal_at from unnest($3::float8[], $4::float8[]) as u (at, decided_at) cross join lateral (
     select x.nominal_at from (
       (select r.nominal_at from belfry.runs r where r.shard = $1 and r.job_id = $2 and ${DECIDED_WITH('r')} order by r.nominal_at limit 1)
       union all
       (select a.nominal_at from belfry.attempts a where a.shard = $1 and a.job_id = $2 and ${DECIDED_WITH('a')} order by a.nominal_at limit 1)
       union all
       (select r.nominal_at from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at < to_timestamp(u.at / 1000)
        order by r.nominal_at desc limit 1)
       union all
       (select a.nominal_at from belfry.attempts a where a.shard = $1 and a.job_id = $2 and a.nominal_at < to_timestamp(u.at / 1000)
          and a.finished_at >= to_timestamp(u.decided_at / 1000)
        order by a.nominal_at desc limit 1)
     ) x order by x.nominal_at desc limit 1) alive`,
)
const CANCELED_BY = statement(
  'explain_cancels',
  `select u.run_id, done.action, done.actor, done.changed_at from unnest($2::text[], $3::text[], $4::float8[]) as u (run_id, queue, at) cross join lateral (
     (select c.action, c.actor, c.changed_at from belfry.job_changes c
      where c.tenant_id = $1 and c.subject = ${SUBJECT.run} and c.subject_id = u.run_id and c.action = 'cancel' and ${NEAR} order by c.changed_at limit 1)
     union all
     (select c.action, c.actor, c.changed_at from belfry.job_changes c
      where c.tenant_id = $1 and c.subject = ${SUBJECT.queue} and c.subject_id = u.queue and c.action = 'purge' and ${NEAR} order by c.changed_at limit 1)
     limit 1) done`,
)
const CALENDARS = statement(
  'explain_calendars',
  `select c.changed_at, u.name, c.before from unnest($2::text[]) as u (name) cross join lateral (
     select c.changed_at, c.written_at, c.before from belfry.job_changes c
     where c.tenant_id = $1 and c.subject = $4 and c.subject_id = u.name and c.changed_at >= to_timestamp($3::float8 / 1000)
     order by c.changed_at, c.written_at limit 100) c
   order by c.changed_at, c.written_at`,
)

const DAY_NAME = statement(
  'explain_day_name',
  `select d.day ->> 1 from belfry.calendars c cross join lateral json_array_elements(c.days) as d (day)
   where c.tenant_id = $1 and c.name = $2 and d.day ->> 0 = $3 limit 1`,
)

export interface Overlapped {
  at: Instant
  decidedAt: Instant
}

/** By the skipped time, the nominal time of the run that was in its way, or that was made in its place. */
export async function overlappedWith(
  db: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  skipped: readonly Overlapped[],
): Promise<Map<Instant, Instant>> {
  if (skipped.length === 0) return new Map()
  const at = skipped.map((skip) => skip.at)
  const decided = skipped.map(({ decidedAt }) => decidedAt)
  return new Map(await db.query<[Instant, Instant]>(ALIVE_THEN, [shard, jobId, at, decided]))
}

export interface CanceledRun {
  runId: string
  queue: string | null
  at: Instant
}

/** By run, who canceled it alone or emptied its queue. */
export async function canceledBy(
  db: Queryable,
  tenantId: number,
  runs: readonly CanceledRun[],
): Promise<Map<string, Doer>> {
  if (runs.length === 0) return new Map()
  const rows = await db.query<[string, string, string, Instant]>(CANCELED_BY, [
    tenantId,
    runs.map(({ runId }) => runId),
    runs.map(({ queue }) => queue),
    runs.map(({ at }) => at),
  ])
  return new Map(
    rows.map(([runId, action, actor, at]) => [runId, { action, actor, at: new Date(at), reason: null }] as const),
  )
}

/** What the calendars of these names held before each change since an instant. */
export async function calendarChanges(
  db: Queryable,
  tenantId: number,
  names: readonly string[],
  since: Instant,
): Promise<CalendarChange[]> {
  if (names.length === 0) return []
  type Row = [at: Instant, name: string, before: string | null]
  const rows = await db.query<Row>(CALENDARS, [tenantId, names, since, SUBJECT.calendar])
  return rows.map(([at, name, before]) => ({ at, name, before: before === null ? null : calendarOf(before) }))
}

function calendarOf(json: string): NamedCalendar {
  const { days, weekend } = JSON.parse(json) as { days: { date: string; name?: string }[]; weekend: number[] }
  return {
    days: days.map(({ date }) => date),
    weekend,
    nameOf: (date) => days.find((day) => day.date === date)?.name ?? null,
  }
}

/** What a calendar calls a day now; null: nothing. */
export async function readDayName(
  db: Queryable,
  tenantId: number,
  calendar: string,
  date: string,
): Promise<string | null> {
  const [row] = await db.query<[string | null]>(DAY_NAME, [tenantId, calendar, date])
  return row?.[0] ?? null
}
