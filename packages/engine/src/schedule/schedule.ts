import {
  type CatchUp,
  DEFAULT_CATCH_UP,
  type DstPolicy,
  type ResolvedExclusion,
  type ResolvedSpec,
} from '../job/definition.ts'
import { hash64 } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'

/** The fire times of a schedule. Every question is answered with bounded work, for schedules that are over too. */
export interface Schedule {
  /** The first fire time strictly after an instant; null if there is none any more. */
  next(after: Instant): Instant | null
  /** The last fire time in (after, atOrBefore]; null if there is none. */
  latest(atOrBefore: Instant, after: Instant): Instant | null
  /** How many fire times lie in (after, until]; counting stops at `limit`. */
  count(after: Instant, until: Instant, limit: number): number
}

/** The fire times in [from, to), oldest first, so many at most. */
export function fireTimesIn(schedule: Schedule, from: Instant, to: Instant, limit: number): Instant[] {
  const times: Instant[] = []
  for (let at = schedule.next(from - 1); at !== null && at < to && times.length < limit; at = schedule.next(at)) {
    times.push(at)
  }
  return times
}

/** For schedules that can do no better than to walk. */
export function countFireTimes(schedule: Schedule, after: Instant, until: Instant, limit: number): number {
  let counted = 0
  let fire = limit > 0 ? schedule.next(after) : null
  while (fire !== null && fire <= until) {
    counted++
    fire = counted < limit ? schedule.next(fire) : null
  }
  return counted
}

/** Nothing fires from the year 10000 on: RFC 3339 cannot write it. */
export const END_OF_TIME: Instant = 253_402_300_800_000

/** The year 1: nothing is asked about earlier times. */
export const BEGIN_OF_TIME: Instant = -62_135_596_800_000

/**
 * The one text of a schedule: fixed order of keys, defaults left out. Its hash is stored with every timer, so the text of a
 * schedule must never change; whatever is new is left out where it is not used.
 */
export function canonicalSchedule(spec: ResolvedSpec): string {
  const { timezone, endAt } = spec
  const catchUp = spec.catchUp === undefined ? undefined : canonicalCatchUp(spec.catchUp)
  const exclude = spec.exclude?.length ? spec.exclude.map(canonicalExclusion) : undefined
  const onExcluded = exclude && spec.onExcluded
  // JSON leaves out what is undefined.
  if ('cron' in spec) {
    const { startAt } = spec
    const dst = canonicalDst(spec.dst)
    return JSON.stringify({
      cron: canonicalList(spec.cron),
      timezone,
      startAt,
      endAt,
      dst,
      exclude,
      onExcluded,
      catchUp,
    })
  }
  const { every, anchor, count } = spec
  return JSON.stringify({ every, timezone, anchor, endAt, count, exclude, onExcluded, catchUp })
}

/** Of what holds the days of calendars, which `resolveSpec` makes and nobody changes: long texts, asked for several times. */
const knownIds = new WeakMap<ResolvedSpec, string>()

export function scheduleId(spec: ResolvedSpec): string {
  const known = knownIds.get(spec)
  if (known !== undefined) return known
  const id = hash64(canonicalSchedule(spec))
  if (spec.exclude?.some((one) => 'days' in one)) knownIds.set(spec, id)
  return id
}

/** The order of expressions does not matter, and a list of one is that one. */
function canonicalList(cron: string | readonly string[]): string | readonly string[] {
  if (typeof cron === 'string') return cron
  const expressions = [...new Set(cron)].sort()
  const [first, second] = expressions
  return first !== undefined && second === undefined ? first : expressions
}

function canonicalDst({ gap, overlap }: DstPolicy = {}): DstPolicy | undefined {
  if (gap === undefined && overlap === undefined) return undefined
  return { ...(gap === undefined ? {} : { gap }), ...(overlap === undefined ? {} : { overlap }) }
}

/** Exclusions keep their order: messages name them by their place. */
function canonicalExclusion(one: ResolvedExclusion): ResolvedExclusion {
  if ('date' in one) return { date: one.date }
  if ('cron' in one) return { cron: one.cron }
  if ('fromAt' in one) return { fromAt: one.fromAt, toAt: one.toAt }
  if ('from' in one) return { from: one.from, to: one.to }
  return { days: canonicalDays(one.days), weekend: [...new Set(one.weekend)].sort() }
}

/** A calendar is stored in order, and there is nothing to do then. */
function canonicalDays(days: readonly string[]): readonly string[] {
  const isInOrder = days.every((day, index) => index === 0 || (days[index - 1] as string) < day)
  return isInOrder ? days : [...new Set(days)].sort()
}

function canonicalCatchUp({ policy, windowMs, max }: CatchUp): CatchUp | undefined {
  const usual = DEFAULT_CATCH_UP
  return policy === usual.policy && windowMs === usual.windowMs && max === usual.max
    ? undefined
    : { policy, windowMs, max }
}
