import type { CronSpec, ResolvedExclusion, ResolvedSpec } from '../job/definition.ts'
import { BoundedSchedule } from './bounded-schedule.ts'
import {
  BusinessDaySchedule,
  checkBusinessDays,
  MAX_TIMES_PER_DAY,
  type MeantSchedule,
} from './business-day-schedule.ts'
import { ClosedOnTheWall, ClosedRanges } from './closed-instants.ts'
import { CronTimes } from './cron-times.ts'
import type { ExcludedDays } from './excluded-days.ts'
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
  const given =
    'cron' in spec ? bounds(spec, cronTimes(spec, zone, times)) : without(new IntervalSchedule(spec), zone, times)
  return instants.length === 0 ? given : new ExcludingSchedule(given, new ClosedRanges(instants))
}

function movingSchedule(spec: ResolvedSpec, zone: Zone, { days, patterns, instants }: Excluded): Schedule {
  const business = businessDays(spec, zone, days)
  const moved = without(business, zone, new ExcludedTimes(NOTHING_EXCLUDED.days, patterns))
  // What would end in time may be moved past the end.
  return new BoundedSchedule(new ExcludingSchedule(moved, new ClosedRanges(instants)), {
    startAt: BEGIN_OF_TIME,
    endAt: spec.endAt ?? END_OF_TIME,
  })
}

/** The times of a schedule, those on excluded days moved, and nothing else left out. */
export function businessDays(spec: ResolvedSpec, zone: Zone, days: ExcludedDays): BusinessDaySchedule {
  if (!('cron' in spec)) {
    const interval = new IntervalSchedule(spec)
    checkBusinessDays(days, interval.timesPerDay)
    return new BusinessDaySchedule(interval, zone, days)
  }
  checkBusinessDays(days, countTimesOfDay(firingPatterns(spec.cron), MAX_TIMES_PER_DAY))
  const times = cronTimes(spec, zone, NOTHING_EXCLUDED)
  const bounded = bounds(spec, times)
  const meant: MeantSchedule = {
    next: (after) => bounded.next(after),
    latest: (atOrBefore, after) => bounded.latest(atOrBefore, after),
    count: (after, until, limit) => bounded.count(after, until, limit),
    meantAt: (fire) => times.flatMap((one) => one.meantAt(fire)),
  }
  return new BusinessDaySchedule(meant, zone, days)
}

function cronTimes(spec: CronSpec<ResolvedExclusion>, zone: Zone, excluded: ExcludedTimes): CronTimes[] {
  return firingPatterns(spec.cron).map((pattern) => new CronTimes(pattern, zone, excluded, spec.dst))
}

function bounds(spec: CronSpec<ResolvedExclusion>, times: readonly CronTimes[]): Schedule {
  return new BoundedSchedule(times.length === 1 ? (times[0] as CronTimes) : new UnionSchedule(times), {
    startAt: spec.startAt ?? 0,
    endAt: Math.min(spec.endAt ?? END_OF_TIME, END_OF_TIME),
  })
}

function without(schedule: Schedule, zone: Zone, excluded: ExcludedTimes): Schedule {
  return excluded.isEmpty ? schedule : new ExcludingSchedule(schedule, new ClosedOnTheWall(zone, excluded))
}
