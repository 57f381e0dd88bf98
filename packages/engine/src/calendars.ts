import { checkedOptions } from './call-options.ts'
import { OfLibrary } from './scope.ts'
import type { Page, PageRequest } from './store/page.ts'
import { type CalendarListItem, type CalendarView, pageOfCalendars, viewOfCalendar } from './tenants/calendar-view.ts'
import type { CalendarInput } from './tenants/understand-calendar.ts'

interface OfTenant {
  tenant?: string
}

/** Days that schedules exclude by the name of a calendar. */
export class Calendars extends OfLibrary {
  /** Makes it, or replaces all of it. The next times of jobs that name it follow within seconds. */
  async put(name: string, input: CalendarInput, options: OfTenant = {}): Promise<{ created: boolean }> {
    const outcome = await this.scope.engine.calendars.put(await this.#tenantId(options), name, input, 'library')
    if (outcome !== 'same') await this.scope.engine.refresh()
    return { created: outcome === 'created' }
  }

  /** Null: there is none. */
  async get(name: string, options: OfTenant = {}): Promise<CalendarView | null> {
    return viewOfCalendar(this.scope.engine.db, await this.#tenantId(options), name)
  }

  /** By name, a page at a time, without their days. */
  async list(options: OfTenant & PageRequest = {}): Promise<Page<CalendarListItem>> {
    const { tenant = 'default', ...page } = checkedOptions(options, ['tenant', 'limit', 'cursor'])
    return pageOfCalendars(this.scope.engine.db, await this.scope.engine.registry.tenantId(tenant), page)
  }

  /** Only one that no active or paused job names. False: there was none. */
  async delete(name: string, options: OfTenant = {}): Promise<boolean> {
    return this.scope.engine.calendars.delete(await this.#tenantId(options), name, 'library')
  }

  #tenantId(options: OfTenant): Promise<number> {
    const { tenant = 'default' } = checkedOptions(options, ['tenant'])
    return this.scope.engine.registry.tenantId(tenant)
  }
}
