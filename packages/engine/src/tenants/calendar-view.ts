import { WORD } from '../input/read-fields.ts'
import type { Queryable } from '../store/database.ts'
import { limitOf, type Page, type PageRequest, pageOf, readCursor } from '../store/page.ts'
import type { CalendarDay } from './calendar-day.ts'
import { type CalendarSummary, listCalendars, readCalendar } from './calendar-rows.sql.ts'
import { WEEKDAYS, type Weekday } from './understand-calendar.ts'

export interface CalendarListItem {
  name: string
  dayCount: number
  /** Weekdays that never are business days. */
  weekend: Weekday[]
  updatedAt: Date
  /** Jobs that name it are still being planned by its last change. */
  replanning: boolean
}

export interface CalendarView extends CalendarListItem {
  days: CalendarDay[]
}

/** By name, a page at a time, without their days. */
export async function pageOfCalendars(
  db: Queryable,
  tenantId: number,
  request: PageRequest,
): Promise<Page<CalendarListItem>> {
  const limit = limitOf(request)
  const [after = ''] = readCursor(request, [WORD]) ?? []
  const found = await listCalendars(db, tenantId, after, limit + 1)
  return pageOf(found.map(itemOf), limit, ({ name }) => [name])
}

/** Null: there is none. */
export async function viewOfCalendar(db: Queryable, tenantId: number, name: string): Promise<CalendarView | null> {
  const found = WORD.test(name) ? await readCalendar(db, tenantId, name) : null
  return found && { ...itemOf({ ...found, dayCount: found.days.length }), days: found.days }
}

const itemOf = ({ name, dayCount, weekend, updatedAt, version, replanned }: CalendarSummary): CalendarListItem => ({
  name,
  dayCount,
  weekend: weekend.map((day) => WEEKDAYS[day] as Weekday),
  updatedAt: new Date(updatedAt),
  replanning: replanned < version,
})
