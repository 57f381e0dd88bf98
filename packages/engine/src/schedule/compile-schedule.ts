import type { CronSpec, ResolvedExclusion, ResolvedSpec } from '../job/definition.ts'
import { BoundedSchedule } from './bounded-schedule.ts'
import { BusinessDaySchedule, checkBusinessDays, MAX_TIMES_PER_DAY } from './business-day-schedule.ts'
import { ClosedOnTheWall, ClosedRanges } from './closed-instants.ts'
import { CronTimes } from './cron-times.ts'
import { ExcludedTimes, NOTHING_EXCLUDED } from './excluded-times.ts'
import { ExcludingSchedule } from './excluding-schedule.ts'
import { countTimesOfDay, firingPatterns } from './firing-pattern.ts'
import { IntervalSchedule } from './interval-schedule.ts'
import { type Excluded, readExclusions } from './read-exclusions.ts'
import { BEGIN_OF_TIME, END_OF_TIME, type Schedule } from './schedule.ts'
import { UnionSchedule } from './union-schedule.ts'
import { type Zone, zoneOf } from './zone.ts'

/**
 * A schedule is made of layers: the times that its expressions or its interval give, within its bounds; those on excluded
 * days moved, if it asks for that; without what is excluded.
 *
 * Throws `invalid_argument` for whatever cannot be understood, and for expressions that never fire.
 */
export function compileSchedule(spec: ResolvedSpec): Schedule {
  const zone = zoneOf(spec.timezone)
  const excluded = readExclusions(spec.exclude)
  const { days, patterns, instants } = excluded
  if (spec.onExcluded !== undefined && !days.isEmpty) return movingSchedule(spec, zone, excluded)
  const times = days.isEmpty && patterns.length === 0 ? NOTHING_EXCLUDED : new ExcludedTimes(days, patterns)
  const given = 'cron' in spec ? cronSchedule(spec, zone, times) : without(new IntervalSchedule(spec), zone, times)
  return instants.length === 0 ? given : new ExcludingSchedule(given, new ClosedRanges(instants))
}

function movingSchedule(spec: ResolvedSpec, zone: Zone, { days, patterns, instants }: Excluded): Schedule {
  let given: Schedule
  if ('cron' in spec) {
    checkBusinessDays(days, countTimesOfDay(firingPatterns(spec.cron), MAX_TIMES_PER_DAY))
    given = cronSchedule(spec, zone, NOTHING_EXCLUDED)
  } else {
    const interval = new IntervalSchedule(spec)
    checkBusinessDays(days, interval.timesPerDay)
    given = interval
  }
  const moved = without(
    new BusinessDaySchedule(given, zone, days),
    zone,
    new ExcludedTimes(NOTHING_EXCLUDED.days, patterns),
  )
  // What would end in time may be moved past the end.
  return new BoundedSchedule(new ExcludingSchedule(moved, new ClosedRanges(instants)), {
    startAt: BEGIN_OF_TIME,
    endAt: spec.endAt ?? END_OF_TIME,
  })
}

function cronSchedule(spec: CronSpec<ResolvedExclusion>, zone: Zone, excluded: ExcludedTimes): Schedule {
  const times = firingPatterns(spec.cron).map((pattern) => new CronTimes(pattern, zone, excluded, spec.dst))
  return new BoundedSchedule(times.length === 1 ? (times[0] as CronTimes) : new UnionSchedule(times), {
    startAt: spec.startAt ?? 0,
    endAt: Math.min(spec.endAt ?? END_OF_TIME, END_OF_TIME),
  })
}

function without(schedule: Schedule, zone: Zone, excluded: ExcludedTimes): Schedule {
  return excluded.isEmpty ? schedule : new ExcludingSchedule(schedule, new ClosedOnTheWall(zone, excluded))
}
