import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { CalendarDay } from './calendar-day.ts'
import type { UnderstoodCalendar } from './understand-calendar.ts'

/** So that a list of them is bounded, and nobody keeps a database here. */
export const MAX_CALENDARS = 1_000

const CALENDAR = columns({
  name: column<string>('c.name'),
  days: column<string>('c.days'),
  weekend: column<string>('c.weekend'),
  version: column<number>('c.version'),
  /** The version up to which the jobs that name the calendar are planned. */
  replanned: column<number>('c.replanned'),
  updatedAt: column<Instant>('c.updated_at'),
})
type Row = RowOf<Read<typeof CALENDAR>>
export type CalendarRow = ReturnType<typeof rowOf>

const READ = statement(
  'read_calendar',
  `select ${CALENDAR.text} from belfry.calendars c where c.tenant_id = $1 and c.name = $2`,
)
const LOCK = statement(
  'lock_calendar',
  `select ${CALENDAR.text} from belfry.calendars c where c.tenant_id = $1 and c.name = $2 for update`,
)
const PUT = statement(
  'put_calendar',
  `insert into belfry.calendars as c (tenant_id, name, days, weekend, version, replanned, updated_at)
   select $1, $2, $3::json, $4::smallint[], 1, $6, to_timestamp($5::float8 / 1000)
   where (select count(*) from belfry.calendars o where o.tenant_id = $1) < ${MAX_CALENDARS}
   on conflict (tenant_id, name) do nothing returning c.version`,
)
const WRITE = statement(
  'write_calendar',
  `update belfry.calendars c set days = $3::json, weekend = $4::smallint[], version = $5, updated_at = to_timestamp($6::float8 / 1000)
   where c.tenant_id = $1 and c.name = $2`,
)
const DELETE = statement('delete_calendar', 'delete from belfry.calendars c where c.tenant_id = $1 and c.name = $2')
const LIST = statement(
  'list_calendars',
  `select c.name, json_array_length(c.days), c.weekend, c.version, c.replanned, c.updated_at from belfry.calendars c
   where c.tenant_id = $1 and c.name > $2 order by c.name limit $3`,
)
const RAISE_REPLANNED = statement(
  'raise_replanned',
  'update belfry.calendars c set replanned = $3 where c.tenant_id = $1 and c.name = $2 and c.version = $3 and c.replanned < $3',
)

const weekdaysOf = (array: string): number[] => (array === '{}' ? [] : array.slice(1, -1).split(',').map(Number))

/** As they are stored: a name only where there is one. */
const daysJson = (days: readonly CalendarDay[]): string =>
  JSON.stringify(days.map(({ date, name }) => (name === undefined ? [date] : [date, name])))

function rowOf(row: Row) {
  const { days, weekend, ...calendar } = CALENDAR.read(row)
  const named = (JSON.parse(days) as [string, string?][]).map(
    ([date, name]): CalendarDay => (name === undefined ? { date } : { date, name }),
  )
  return { ...calendar, days: named, weekend: weekdaysOf(weekend) }
}

export async function readCalendar(db: Queryable, tenantId: number, name: string): Promise<CalendarRow | null> {
  const [row] = await db.query<Row>(READ, [tenantId, name])
  return row ? rowOf(row) : null
}

export async function lockCalendar(tx: Queryable, tenantId: number, name: string): Promise<CalendarRow | null> {
  const [row] = await tx.query<Row>(LOCK, [tenantId, name])
  return row ? rowOf(row) : null
}

/** A new one. False: somebody has just made it, or there are too many. */
export async function putCalendar(
  tx: Queryable,
  at: { tenantId: number; name: string; now: Instant; replanned: number },
  { days, weekend }: UnderstoodCalendar,
): Promise<boolean> {
  const rows = await tx.query(PUT, [at.tenantId, at.name, daysJson(days), weekend, at.now, at.replanned])
  return rows.length > 0
}

export async function writeCalendar(
  tx: Queryable,
  at: { tenantId: number; name: string; now: Instant; version: number },
  { days, weekend }: UnderstoodCalendar,
): Promise<void> {
  await tx.execute(WRITE, [at.tenantId, at.name, daysJson(days), weekend, at.version, at.now])
}

export const deleteCalendar = (tx: Queryable, tenantId: number, name: string): Promise<number> =>
  tx.execute(DELETE, [tenantId, name])

export interface CalendarSummary extends Omit<CalendarRow, 'days'> {
  dayCount: number
}

export async function listCalendars(
  db: Queryable,
  tenantId: number,
  after: string,
  limit: number,
): Promise<CalendarSummary[]> {
  const rows = await db.query<[string, number, string, number, number, Instant]>(LIST, [tenantId, after, limit])
  return rows.map(([name, dayCount, weekend, version, replanned, updatedAt]) => {
    return { name, dayCount, weekend: weekdaysOf(weekend), version, replanned, updatedAt }
  })
}

/** All jobs that name the calendar are planned by this version. Nothing if it has changed again meanwhile. */
export async function raiseReplanned(
  db: Queryable,
  { tenantId, name, version }: { tenantId: number; name: string; version: number },
): Promise<boolean> {
  return (await db.execute(RAISE_REPLANNED, [tenantId, name, version])) > 0
}
