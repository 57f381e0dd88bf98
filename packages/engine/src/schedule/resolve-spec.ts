import type { Calendar, Exclusion, ResolvedExclusion, ResolvedSpec, ScheduleSpec } from '../job/definition.ts'
import { withoutHashes } from './hashed-field.ts'
import { notUnderstood, shown } from './not-understood.ts'

export interface ResolvedFor {
  /** Decides what `H` stands for. */
  jobId: string
  calendarOf(name: string): Calendar | undefined
}

/** What must be read before the schedule can be resolved. */
export function calendarsOf({ exclude }: ScheduleSpec): readonly string[] {
  return exclude === undefined ? NO_NAMES : exclude.flatMap((one) => ('calendar' in one ? [one.calendar] : []))
}

const NO_NAMES: readonly string[] = []

/** The schedule of one job, standing on its own: numbers instead of `H`, days instead of the names of calendars. */
export function resolveSpec(spec: ScheduleSpec, at: ResolvedFor): ResolvedSpec {
  const { exclude, ...rest } = spec
  const resolved = 'cron' in rest ? { ...rest, cron: resolvedCron(rest.cron, at.jobId) } : rest
  return exclude === undefined ? resolved : { ...resolved, exclude: exclude.map((one) => resolvedExclusion(one, at)) }
}

function resolvedCron(cron: string | readonly string[], jobId: string): string | readonly string[] {
  return typeof cron === 'string' ? withoutHashes(cron, jobId) : cron.map((one) => withoutHashes(one, jobId))
}

function resolvedExclusion(exclusion: Exclusion, at: ResolvedFor): ResolvedExclusion {
  if ('cron' in exclusion) return { cron: withoutHashes(exclusion.cron, at.jobId) }
  if (!('calendar' in exclusion)) return exclusion
  const calendar = at.calendarOf(exclusion.calendar)
  if (calendar === undefined) throw notUnderstood(`there is no calendar ${shown(exclusion.calendar)}`)
  return { days: calendar.days, weekend: calendar.weekend }
}
