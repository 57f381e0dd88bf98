import type { CronSpec, ResolvedExclusion } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { hasBit } from './bits.ts'
import { dateOf, formatDay, weekdayOf } from './calendar-day.ts'
import type { CronPattern } from './cron-pattern.ts'
import { dstPolicyOf } from './cron-times.ts'
import { DAY_MS } from './duration.ts'
import { monthName, weekdayName } from './english/english-list.ts'
import { NOTHING_EXCLUDED } from './excluded-times.ts'
import { firingPatterns } from './firing-pattern.ts'
import { firstTimeOfDay } from './time-of-day.ts'
import { WallTimes } from './wall-times.ts'
import type { LocalTime, Zone } from './zone.ts'

/** More times of day than this are not listed. */
const MAX_LISTED = 4

export function dayText(local: LocalTime): string {
  return formatDay(Math.floor(local / DAY_MS))
}

/** `09:00`, or `09:00:30` where there are seconds. */
export function clockText(local: LocalTime): string {
  const time = new Date(local).toISOString().slice(11, 19)
  return time.endsWith(':00') ? time.slice(0, 5) : time
}

/** What a change of the clocks did to a local time that an expression matches; null if that is not the reason. */
export function whyNotByDst(spec: CronSpec<ResolvedExclusion>, at: Instant, zone: Zone): string | null {
  const patterns = firingPatterns(spec.cron)
  const stretch = zone.stretchAt(at)
  const local = at + stretch.offset
  const repeated = patterns.find((pattern) => matches(pattern, local))
  if (repeated !== undefined) {
    const { overlap } = dstPolicyOf(repeated, spec.dst)
    return `${clockText(local)} comes twice on ${dayText(local)} in ${zone.name}; it fires only the ${overlap} time`
  }
  // Somebody who does not know of the change counts on with the offset from before it.
  const meant = at + stretch.offsetBefore
  if (meant >= stretch.from + stretch.offset) return null
  const skipped = patterns.find((pattern) => matches(pattern, meant))
  if (skipped === undefined) return null
  const { gap } = dstPolicyOf(skipped, spec.dst)
  const instead = gap === 'skip' ? 'does not fire then' : `fires at ${clockText(stretch.from + stretch.offset)} instead`
  return `the clocks skip ${clockText(meant)} on ${dayText(meant)} in ${zone.name}; it ${instead}`
}

function matches(pattern: CronPattern, local: LocalTime): boolean {
  return new WallTimes(pattern, NOTHING_EXCLUDED).has(local)
}

/** Which field of the expression says no. */
export function whyNotByExpression(cron: string | readonly string[], local: LocalTime, at: Instant): string {
  const [pattern, ...others] = firingPatterns(cron)
  if (pattern === undefined || others.length > 0) {
    const weekday = weekdayName(weekdayOf(Math.floor(local / DAY_MS)))
    return `none of its ${others.length + 1} expressions fires at ${clockText(local)} on ${weekday}, ${dayText(local)}`
  }
  const { year, month, day } = dateOf(Math.floor(local / DAY_MS))
  if (!hasBit(pattern.months, month)) return `${pattern.text} does not fire in ${monthName(month)}`
  if (!hasBit(pattern.daysIn(year, month), day - 1))
    return `${pattern.text} does not fire ${onDay(pattern, local, day)}`
  if (at % 1_000 !== 0) return `${pattern.text} fires on whole seconds`
  const times = timesOf(pattern, local)
  return `${pattern.text} ${times === null ? 'does not fire' : `fires at ${times}, not`} at ${clockText(local)}`
}

/** Said by the field that decides it. */
function onDay(pattern: CronPattern, local: LocalTime, day: number): string {
  const weekday = weekdayName(weekdayOf(Math.floor(local / DAY_MS)))
  const [days, , weekdays] = pattern.text.split(' ').slice(-3)
  if (days === '*' && !/[#L]/.test(weekdays ?? '')) return `on a ${weekday}`
  return weekdays === '*' && /^[\d,/-]+$/.test(days ?? '')
    ? `on day ${day} of a month`
    : `on ${weekday}, ${dayText(local)}`
}

function timesOf(pattern: CronPattern, local: LocalTime): string | null {
  if (pattern.timesPerDay > MAX_LISTED) return null
  const midnight = Math.floor(local / DAY_MS) * DAY_MS
  const times: string[] = []
  for (let time = firstTimeOfDay(pattern, 0, []); time >= 0; time = firstTimeOfDay(pattern, time + 1, [])) {
    times.push(clockText(midnight + time * 1_000))
  }
  return times.length < 2 ? times.join('') : `${times.slice(0, -1).join(', ')} and ${times.at(-1)}`
}
