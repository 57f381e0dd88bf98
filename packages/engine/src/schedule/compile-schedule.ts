import type { ResolvedSpec, ScheduleSpec } from '../job/definition.ts'
import { CronSchedule } from './cron-schedule.ts'
import { IntervalSchedule } from './interval-schedule.ts'
import type { Schedule } from './schedule.ts'

/** Throws `invalid_argument` for an expression, zone or interval that cannot be understood. */
export function compileSchedule(spec: ResolvedSpec | ScheduleSpec): Schedule {
  return 'cron' in spec ? new CronSchedule(spec) : new IntervalSchedule(spec)
}
