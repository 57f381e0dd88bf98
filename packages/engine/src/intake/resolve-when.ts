import { BelfryError, refusal } from '../errors.ts'
import type { Calendar, ResolvedSpec, ScheduleSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'
import { hasHashes } from '../schedule/hashed-field.ts'
import { readOrNothing, shown } from '../schedule/not-understood.ts'
import { calendarsOf as calendarsOfSpec, resolveSpec } from '../schedule/resolve-spec.ts'
import { mustFire } from './never-fires.ts'

/** As far as it matters here. */
type When = { kind: 'now' | 'once' } | { kind: 'recurring'; schedule: ScheduleSpec; askedAt: Instant }

export type CalendarMap = ReadonlyMap<string, Calendar>

/** Reads those of a tenant's calendars that there are. */
export interface CalendarReader {
  read(tenantId: number, names: readonly string[]): Promise<CalendarMap>
}

/** For times that are worked out before there is a job, or without one. */
export const NO_JOB = '00000000-0000-7000-8000-000000000000'
const NO_NAMES: readonly string[] = []
export const NO_CALENDARS: CalendarMap = new Map()

/** The schedule itself if it needs nothing of its job or tenant; null: it has yet to be resolved. */
export function aloneOf(schedule: ScheduleSpec): ResolvedSpec | null {
  const { exclude } = schedule
  if (exclude?.some((exclusion) => 'calendar' in exclusion)) return null
  return hasHash(schedule) ? null : (schedule as ResolvedSpec)
}

/** Whether its times depend on the job's id. */
export function hasHash(schedule: ScheduleSpec): boolean {
  if (!('cron' in schedule)) return false
  const { cron } = schedule
  return typeof cron === 'string' ? hasHashes(cron) : cron.some(hasHashes)
}

/** Calendars that must be read before the job can be planned. */
export function calendarsOf(when: When): readonly string[] {
  return when.kind === 'recurring' ? calendarsOfSpec(when.schedule) : NO_NAMES
}

/** Throws `invalid_job` for a calendar that is not there, and for what has no time to fire at. */
export function resolveFor(
  schedule: ScheduleSpec,
  { jobId, calendars, from }: { jobId: string; calendars: CalendarMap; from: Instant },
): ResolvedSpec {
  const alone = aloneOf(schedule)
  if (alone !== null) return alone
  mustBeThere(schedule, calendars)
  const spec = resolveSpec(schedule, { jobId, calendarOf: (name) => calendars.get(name) })
  try {
    mustFire(spec, from)
  } catch (error) {
    throw error instanceof BelfryError && error.code === 'invalid_argument' ? inField(spec, error) : error
  }
  return spec
}

/** What proved right with the days and numbers of another job may be wrong with those of this one; says in which field. */
function inField(spec: ResolvedSpec, { message }: BelfryError): BelfryError {
  const path = 'cron' in spec ? cronPath(spec.cron) : 'every'
  return refusal('invalid_job', path, message)
}

function cronPath(cron: string | readonly string[]): string {
  if (typeof cron === 'string') return 'cron'
  const wrong = cron.findIndex((one) => !readOrNothing(() => compileSchedule({ cron: one, timezone: 'UTC' })))
  return wrong < 0 ? 'cron' : `cron[${wrong}]`
}

function mustBeThere({ exclude = [] }: ScheduleSpec, calendars: CalendarMap): void {
  const complaints = exclude.flatMap((exclusion, index) =>
    'calendar' in exclusion && !calendars.has(exclusion.calendar)
      ? [{ path: `exclude[${index}].calendar`, message: `there is no calendar ${shown(exclusion.calendar)}` }]
      : [],
  )
  const [first] = complaints
  if (first) throw new BelfryError('invalid_job', `${first.path}: ${first.message}`, { complaints })
}

/** The same before the job has its id, for a call that must be refused before anything is made. */
export function mustResolve(when: When, calendars: CalendarMap): void {
  if (when.kind === 'recurring' && calendarsOf(when).length > 0)
    resolveFor(when.schedule, { jobId: NO_JOB, calendars, from: when.askedAt })
}
