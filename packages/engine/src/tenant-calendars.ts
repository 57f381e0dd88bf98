import { OfScope } from './scope.ts'
import type { Page, PageRequest } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'
import { type CalendarListItem, type CalendarView, pageOfCalendars, viewOfCalendar } from './tenants/calendar-view.ts'
import type { CalendarInput } from './tenants/understand-calendar.ts'

/** A tenant's named calendars. */
export class TenantCalendars extends OfScope<TenantScope> {
  /** By name, a page at a time, without their days. */
  list(page: PageRequest = {}): Promise<Page<CalendarListItem>> {
    return pageOfCalendars(this.scope.fresh, this.scope.caller.tenantId, page)
  }

  async get(name: string): Promise<CalendarView> {
    const found = await viewOfCalendar(this.scope.fresh, this.scope.caller.tenantId, name)
    if (found === null) throw noSuch('calendar', name)
    return found
  }

  /** Makes it, or replaces all of it. The next times of jobs that name it follow within seconds. */
  async put(name: string, input: CalendarInput): Promise<{ created: boolean }> {
    const { engine, caller } = this.scope
    const outcome = await engine.calendars.put(caller.tenantId, name, input, caller.actor)
    // What is done after this answer is done by a node that knows.
    if (outcome !== 'same') await engine.refresh()
    return { created: outcome === 'created' }
  }

  /** Only one that no active or paused job names. */
  async delete(name: string): Promise<void> {
    const { engine, caller } = this.scope
    if (!(await engine.calendars.delete(caller.tenantId, name, caller.actor))) throw noSuch('calendar', name)
  }
}
