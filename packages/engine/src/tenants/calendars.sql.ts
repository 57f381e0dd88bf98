import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { Complaints, isWord, readWord } from '../input/read-fields.ts'
import type { Calendar } from '../job/definition.ts'
import type { Clock } from '../runtime/clock.ts'
import { setLast } from '../runtime/maps.ts'
import type { Database, Transaction } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { countJobsOfCalendar, MAX_COUNTED } from './calendar-jobs.sql.ts'
import {
  type CalendarRow,
  deleteCalendar,
  lockCalendar,
  MAX_CALENDARS,
  putCalendar,
  readCalendar,
  writeCalendar,
} from './calendar-rows.sql.ts'
import { type CalendarInput, calendarOf, type UnderstoodCalendar, understandCalendar } from './understand-calendar.ts'

/** The transaction that wrote a row tells it from one of the same name that was deleted, which its version does not. */
const VERSIONS = statement(
  'read_calendar_versions',
  `select c.name, c.version, c.written_by from unnest($2::text[]) as u (name) cross join lateral (
     select c.name, c.version, c.xmin::text as written_by from belfry.calendars c where c.tenant_id = $1 and c.name = u.name limit 1) c`,
)

/** Calendars whose days are kept in memory; they are asked for with every job that names one. */
const MAX_REMEMBERED = 200

const calendarRow = (tenantId: number, name: string): string => `calendar ${tenantId} ${name}`

interface Remembered {
  version: number
  writtenBy: string
  calendar: Calendar
}

export interface CalendarsDeps {
  db: Database
  clock: Clock
}

/**
 * A tenant's named calendars. A schedule holds the days of its calendars, so a calendar that changes says so by its version,
 * and whoever finds one whose jobs have not been planned by it plans them (`promotion/replanner.ts`).
 */
export class Calendars {
  readonly #deps: CalendarsDeps
  readonly #remembered = new Map<string, Remembered>()

  constructor(deps: CalendarsDeps) {
    this.#deps = deps
  }

  /** Those that there are, as they are now; asked beside a transaction that may be under way. */
  async read(tenantId: number, names: readonly string[]): Promise<ReadonlyMap<string, Calendar>> {
    const found = new Map<string, Calendar>()
    if (names.length === 0) return found
    const { aside } = this.#deps.db
    const rows = await aside.query<[string, number, string]>(VERSIONS, [tenantId, [...new Set(names)]])
    for (const [name, version, writtenBy] of rows) {
      const known = this.#remembered.get(keyOf(tenantId, name))
      if (known?.version === version && known.writtenBy === writtenBy) {
        found.set(name, known.calendar)
        continue
      }
      const row = await readCalendar(aside, tenantId, name)
      if (row) found.set(name, this.#remember(tenantId, row, writtenBy))
    }
    return found
  }

  #remember(tenantId: number, { name, version, ...row }: CalendarRow, writtenBy: string): Calendar {
    const calendar = calendarOf(row)
    // If it was written between the two questions, the next one asks again.
    setLast(this.#remembered, keyOf(tenantId, name), { version, writtenBy, calendar }, MAX_REMEMBERED)
    return calendar
  }

  /** Makes the calendar, or replaces all of it. What changes nothing leaves no trace. */
  async put(tenantId: number, name: string, input: CalendarInput, by: string): Promise<'created' | 'updated' | 'same'> {
    checkName(name)
    const understood = understandCalendar(input, this.#deps.clock.now())
    return this.#deps.db.callers.transactionOn([calendarRow(tenantId, name)], (tx) =>
      this.#put(tx, { tenantId, name, by }, understood),
    )
  }

  async #put(
    tx: Transaction,
    { tenantId, name, by }: { tenantId: number; name: string; by: string },
    understood: UnderstoodCalendar,
  ): Promise<'created' | 'updated' | 'same'> {
    const now = this.#deps.clock.now()
    const change = { tenantId, subject: 'calendar', subjectId: name, actor: by, at: now } as const
    const before = await lockCalendar(tx, tenantId, name)
    if (before === null) {
      // A job that was created while the last one of this name was deleted still has its days.
      const replanned = (await countJobsOfCalendar(tx, tenantId, name)) > 0 ? 0 : 1
      if (await putCalendar(tx, { tenantId, name, now, replanned }, understood)) {
        await recordChange(tx, { ...change, action: 'create', after: understood })
        return 'created'
      }
      // Somebody has just made it: theirs is there now, and this one comes after it.
      if ((await lockCalendar(tx, tenantId, name)) === null)
        throw new BelfryError('quota_exceeded', `a tenant may have ${MAX_CALENDARS} calendars`)
      return this.#put(tx, { tenantId, name, by }, understood)
    }
    const { days, weekend } = before
    if (isSame({ days, weekend }, understood)) return 'same'
    const hasSameDays = isSame(calendarOf(before), calendarOf(understood))
    const version = hasSameDays ? before.version : before.version + 1
    await writeCalendar(tx, { tenantId, name, now, version }, understood)
    await recordChange(tx, { ...change, action: 'update', before: { days, weekend }, after: understood })
    return 'updated'
  }

  /** Only one that no active or paused job names. */
  async delete(tenantId: number, name: string, by: string): Promise<boolean> {
    if (!isWord(name)) return false
    return this.#deps.db.callers.transactionOn([calendarRow(tenantId, name)], async (tx) => {
      const before = await lockCalendar(tx, tenantId, name)
      if (before === null) return false
      const jobs = await countJobsOfCalendar(tx, tenantId, name)
      if (jobs > 0) throw inUse(name, jobs)
      await deleteCalendar(tx, tenantId, name)
      const { days, weekend } = before
      const at = this.#deps.clock.now()
      const change = { tenantId, subject: 'calendar', subjectId: name, action: 'delete', actor: by, at } as const
      await recordChange(tx, { ...change, before: { days, weekend } })
      return true
    })
  }
}

const keyOf = (tenantId: number, name: string): string => `${tenantId}.${name}`

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const inUse = (name: string, jobs: number): BelfryError =>
  new BelfryError(
    'calendar_in_use',
    `active or paused jobs name the calendar "${name}" (${jobs > MAX_COUNTED ? `more than ${MAX_COUNTED}` : jobs}): change or cancel them first`,
  )

function checkName(name: string): void {
  const complaints = new Complaints()
  readWord(complaints, 'name', name)
  // Clients resolve such a part of an address away, and would never find it again.
  if (/^\.+$/.test(name)) complaints.add('name', 'must have more than dots')
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
}
