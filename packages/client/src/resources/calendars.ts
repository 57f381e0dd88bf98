import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { Calendar, CalendarInput, CalendarItem, GetCalendars } from '../wire.ts'

/** Days that schedules exclude by the name of a calendar. */
export class Calendars {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** By name, without their days. */
  list(query: GetCalendars['query'] = {}, options?: CallOptions): Pages<CalendarItem> {
    return new Pages((cursor) =>
      this.#transport.call(
        'GET /v1/calendars',
        { query: cursor === undefined ? query : { ...query, cursor } },
        options,
      ),
    )
  }

  get(name: string, options?: CallOptions): Promise<Calendar> {
    return this.#transport.call('GET /v1/calendars/{name}', { path: { name } }, options)
  }

  /** Makes it, or replaces all that it held. A calendar file goes as `{ icalendar: text }`. */
  put(name: string, calendar: CalendarInput, options?: CallOptions): Promise<Calendar> {
    return this.#transport.call('PUT /v1/calendars/{name}', { path: { name }, body: calendar }, options)
  }

  /** Refused with `calendar_in_use` while active or paused jobs name it. */
  delete(name: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/calendars/{name}', { path: { name } }, options)
  }
}
