import { BelfryError } from '../errors.ts'
import { jitterOf } from '../intake/jitter.ts'
import { JOB_STATUS } from '../intake/job-row.sql.ts'
import type { Calendar, ResolvedSpec, ScheduleSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { compileSchedule } from '../schedule/compile-schedule.ts'
import { readOrNothing } from '../schedule/not-understood.ts'
import { resolveSpec } from '../schedule/resolve-spec.ts'
import type { Schedule } from '../schedule/schedule.ts'
import { zoneOf } from '../schedule/zone.ts'
import { withDaysAround } from './explain-days.ts'
import type { Facts, JobChange, TimeDefinition } from './explain-facts.sql.ts'
import type { Doer } from './explanation.ts'
import type { Range } from './filter.ts'

/** A definition for as long as it counted: from after the end of the one before up to and including `until`. */
export interface InForce {
  after: Instant
  until: Instant
  version: number
  /** Null: a one-off, or a definition that nobody has understood yet. */
  readonly times: ReadTimes | UnreadableTimes | null
  /** How much later than its nominal time a run is due at most. */
  jitterMs: number
  maxRuns: number | null
}

export interface ReadTimes {
  /** As it stands in the definition. */
  given: ScheduleSpec
  spec: ResolvedSpec
  schedule: Schedule
  /** Of many days only those around the question are in `schedule`; this knows all. */
  whole(): Schedule
}

/** A schedule that could be read once: its calendar has changed, or the data of its zone. */
export interface UnreadableTimes {
  unreadable: string
  timezone: string
}

export const readTimesOf = ({ times }: InForce): ReadTimes | null =>
  times !== null && 'schedule' in times ? times : null

/** What a calendar held before it was changed, oldest change first. */
export interface CalendarChange {
  at: Instant
  name: string
  before: NamedCalendar | null
}

export interface NamedCalendar extends Calendar {
  nameOf(date: string): string | null
}

export interface Calendars {
  now: ReadonlyMap<string, Calendar>
  changes: readonly CalendarChange[]
}

/** Paused from after `from` up to and including `until`; null: still. */
export interface Pause {
  from: Instant
  until: Instant | null
  by: Doer
}

/** The calendars that any of these definitions names. */
export function calendarNames({ definition, changes }: Facts): string[] {
  const specs = [definition, ...changes.flatMap(({ before }) => before ?? [])]
  return [...new Set(specs.flatMap(({ schedule }) => namesIn(schedule)))]
}

function namesIn(schedule: unknown): string[] {
  const exclude = (schedule as ScheduleSpec | null)?.exclude
  if (!Array.isArray(exclude)) return []
  return exclude.flatMap((one) => (typeof one?.calendar === 'string' ? [one.calendar as string] : []))
}

/**
 * Which definition counted when. A change acts from after its own instant: what was due by then was decided under what it
 * replaced. So the definition of an instant is what the first update at or after it replaced, or else the one there is.
 * A calendar that changes cuts a definition in two. With `asked`, only the days around it are read.
 */
export function timelineOf(facts: Facts, jobId: string, calendars: Calendars, asked: Range | null): InForce[] {
  const updates = facts.changes.filter(({ action, before }) => action === 'update' && before !== null)
  const first = facts.version - facts.updates
  const definitions = [
    ...updates.map(({ at, before }) => ({ until: at, definition: before as TimeDefinition })),
    { until: Number.POSITIVE_INFINITY, definition: facts.definition },
  ]
  const stretches: InForce[] = []
  let after = Number.NEGATIVE_INFINITY
  for (const [i, { until, definition }] of definitions.entries()) {
    const names = namesIn(definition.schedule)
    const cuts = calendars.changes.filter(({ at, name }) => at > after && at < until && names.includes(name))
    for (const end of [...cuts.map(({ at }) => at), until]) {
      if (end <= after) continue
      const calendarOf = (name: string) => calendarAt(calendars, name, end)
      const times = once(() => (facts.isOneOff ? null : understood(definition.schedule, { jobId, calendarOf }, asked)))
      stretches.push({
        after,
        until: end,
        version: first + i,
        get times() {
          return times()
        },
        jitterMs: jitterOf(jobId, definition.jitterMs ?? 0),
        maxRuns: definition.maxRuns ?? null,
      })
      after = end
    }
  }
  return stretches
}

/** A job may have been changed a thousand times, and one question looks at few of its schedules. */
function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | null = null
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** What the day of a calendar was called at an instant, if that was another calendar than now. */
export function formerNameOf(changes: readonly CalendarChange[], calendar: string, date: string, at: Instant) {
  const next = changes.find((change) => change.name === calendar && change.at >= at)
  return next?.before && { name: next.before.nameOf(date) }
}

/** One that is gone was named by no job that had a future. */
const NO_DAYS: Calendar = { days: [], weekend: [] }

function calendarAt({ now, changes }: Calendars, name: string, until: Instant): Calendar {
  const next = changes.find((change) => change.name === name && change.at >= until)
  return next?.before ?? now.get(name) ?? NO_DAYS
}

/** A definition that SQL made is as somebody wrote it until it is planned. Nothing that is stored makes a question fail. */
function understood(schedule: unknown, at: Parameters<typeof resolveSpec>[1], asked: Range | null): InForce['times'] {
  if (typeof schedule !== 'object' || schedule === null) return null
  const given = schedule as ScheduleSpec
  try {
    const spec = resolveSpec(given, at)
    const whole = once(() => compileSchedule(spec))
    return { given, spec, schedule: asked === null ? whole() : compileSchedule(withDaysAround(spec, asked)), whole }
  } catch (error) {
    const unreadable = error instanceof BelfryError ? error.message : 'it is not written as a schedule is'
    return { unreadable, timezone: readOrNothing(() => zoneOf(given.timezone)) ? given.timezone : 'UTC' }
  }
}

export function inForceAt(timeline: readonly InForce[], at: Instant): InForce {
  return (timeline.find(({ until }) => at <= until) ?? timeline.at(-1)) as InForce
}

/** Nothing is recorded of a job that stays paused, or is changed or canceled meanwhile; who paused it is. */
export function pausesOf(facts: Facts): Pause[] {
  const pauses: Pause[] = []
  let open: Pause | null = null
  for (const change of [...(facts.before ? [facts.before] : []), ...facts.changes]) {
    if (change.action === 'pause') open ??= { from: change.at, until: null, by: doerOf(change) }
    if (open === null || (change.action !== 'resume' && change.action !== 'cancel')) continue
    pauses.push({ ...open, until: change.at })
    open = null
  }
  if (open === null && facts.pausedAt !== null) {
    const by = { action: 'pause', actor: 'belfry', at: new Date(facts.pausedAt), reason: facts.pauseReason }
    open = { from: facts.pausedAt, until: null, by }
  }
  return open === null ? pauses : [...pauses, open]
}

export const pauseAt = (pauses: readonly Pause[], at: Instant): Pause | undefined =>
  pauses.find(({ from, until }) => at > from && (until === null || at <= until))

/** Who canceled the job and when; null: nobody. */
export function cancelOf({ status, changes, before, updatedAt }: Facts): (Doer & { wasCompleted: boolean }) | null {
  const change = [...(before ? [before] : []), ...changes].findLast(({ action }) => action === 'cancel')
  if (change !== undefined) return { ...doerOf(change), wasCompleted: change.was === 'completed' }
  if (status !== JOB_STATUS.canceled) return null
  return { action: 'cancel', actor: 'unknown', at: new Date(updatedAt), reason: null, wasCompleted: false }
}

export const doerOf = ({ action, actor, at, after }: JobChange): Doer => ({
  action,
  actor,
  at: new Date(at),
  reason: after?.reason ?? null,
})
