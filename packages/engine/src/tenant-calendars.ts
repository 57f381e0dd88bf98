import { limitOf, type Page, type PageRequest, readCursor, writeCursor } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'
import type { CalendarDay } from './tenants/calendar-day.ts'
import { type CalendarSummary, listCalendars, readCalendar } from './tenants/calendar-rows.sql.ts'
import { type CalendarInput, WEEKDAYS, type Weekday } from './tenants/understand-calendar.ts'

const NAME = /^[A-Za-z0-9._-]{1,128}$/

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

/** A tenant's named calendars. */
export class TenantCalendars {
  readonly #scope: TenantScope

  constructor(scope: TenantScope) {
    this.#scope = scope
  }

  /** By name, a page at a time, without their days. */
  async list(page: PageRequest = {}): Promise<Page<CalendarListItem>> {
    const { fresh, caller } = this.#scope
    const limit = limitOf(page)
    const [after = ''] = readCursor(page, [NAME]) ?? []
    const found = await listCalendars(fresh, caller.tenantId, after, limit + 1)
    const items = found.slice(0, limit).map(itemOf)
    const last = items.at(-1)
    return { items, nextCursor: found.length > limit && last ? writeCursor([last.name]) : null }
  }

  async get(name: string): Promise<CalendarView> {
    const { fresh, caller } = this.#scope
    const found = NAME.test(name) ? await readCalendar(fresh, caller.tenantId, name) : null
    if (found === null) throw noSuch('calendar', name)
    return { ...itemOf({ ...found, dayCount: found.days.length }), days: found.days }
  }

  /** Makes it, or replaces all of it. The next times of jobs that name it follow within seconds. */
  async put(name: string, input: CalendarInput): Promise<{ created: boolean }> {
    const { engine, caller } = this.#scope
    const outcome = await engine.calendars.put(caller.tenantId, name, input, caller.actor)
    // This node need not wait for its next pulse.
    if (outcome !== 'same') engine.refresh()
    return { created: outcome === 'created' }
  }

  /** Only one that no active or paused job names. */
  async delete(name: string): Promise<void> {
    const { engine, caller } = this.#scope
    if (!(await engine.calendars.delete(caller.tenantId, name, caller.actor))) throw noSuch('calendar', name)
  }
}

const itemOf = ({ name, dayCount, weekend, updatedAt, version, replanned }: CalendarSummary): CalendarListItem => ({
  name,
  dayCount,
  weekend: weekend.map((day) => WEEKDAYS[day] as Weekday),
  updatedAt: new Date(updatedAt),
  replanning: replanned < version,
})
