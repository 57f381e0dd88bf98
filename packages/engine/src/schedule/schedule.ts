import { type CatchUp, DEFAULT_CATCH_UP, type ResolvedSpec, type ScheduleSpec } from '../job/definition.ts'
import { hash64 } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'

export type { ScheduleSpec } from '../job/definition.ts'

/** The fire times of a schedule. Every question is answered with bounded work, for schedules that are over too. */
export interface Schedule {
  /** The first fire time strictly after an instant; null if there is none any more. */
  next(after: Instant): Instant | null
  /** The last fire time in (after, atOrBefore]; null if there is none. */
  latest(atOrBefore: Instant, after: Instant): Instant | null
  /** How many fire times lie in (after, until]; counting stops at `limit`. */
  count(after: Instant, until: Instant, limit: number): number
}

/** Nothing fires from the year 10000 on: RFC 3339 cannot write it. */
export const END_OF_TIME: Instant = 253_402_300_800_000

/** The one text of a schedule: fixed order of keys, defaults left out. */
export function canonicalSchedule(spec: ResolvedSpec | ScheduleSpec): string {
  const catchUp = spec.catchUp === undefined ? undefined : canonicalCatchUp(spec.catchUp)
  // JSON leaves out what is undefined.
  if ('cron' in spec) {
    const { cron, timezone, startAt, endAt } = spec
    return JSON.stringify({ cron, timezone, startAt, endAt, catchUp })
  }
  const { every, timezone, anchor, endAt, count } = spec
  return JSON.stringify({ every, timezone, anchor, endAt, count, catchUp })
}

export function scheduleId(spec: ResolvedSpec | ScheduleSpec): string {
  return hash64(canonicalSchedule(spec))
}

function canonicalCatchUp({ policy, windowMs, max }: CatchUp): CatchUp | undefined {
  const usual = DEFAULT_CATCH_UP
  return policy === usual.policy && windowMs === usual.windowMs && max === usual.max
    ? undefined
    : { policy, windowMs, max }
}
