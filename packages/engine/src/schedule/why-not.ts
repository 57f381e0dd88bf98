import type { ResolvedExclusion, ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { remembered } from '../runtime/maps.ts'
import { businessDays, compileSchedule } from './compile-schedule.ts'
import { isoOf } from './local-time.ts'
import { readExclusions } from './read-exclusions.ts'
import { clockText, dayText, whyNotByDst, whyNotByExpression } from './why-not-cron.ts'
import { type LocalTime, type Zone, zoneOf } from './zone.ts'

export interface WhyNot {
  rule: 'start_at' | 'end_at' | 'count' | 'exclude' | 'dst' | 'expression'
  message: string
}

/** Why a schedule does not fire at an instant, said for a person; null if it does. */
export function whyNot(spec: ResolvedSpec, at: Instant): WhyNot | null {
  if (firesAt(spec, at)) return null
  const zone = zoneOf(spec.timezone)
  return byBounds(spec, at) ?? byExclusion(spec, at, zone) ?? byRhythm(spec, at, zone)
}

function firesAt(spec: ResolvedSpec, at: Instant): boolean {
  return compileSchedule(spec).next(at - 1) === at
}

function plainly({ exclude, onExcluded, ...rest }: ResolvedSpec): ResolvedSpec {
  return rest
}

function byBounds(spec: ResolvedSpec, at: Instant): WhyNot | null {
  const startAt = 'cron' in spec ? spec.startAt : spec.anchor
  if (startAt !== undefined && at < startAt) {
    return { rule: 'start_at', message: `it starts at ${isoOf(startAt)}, and nothing fires before` }
  }
  if (spec.endAt !== undefined && at >= spec.endAt) {
    return { rule: 'end_at', message: `it ends at ${isoOf(spec.endAt)}, and nothing fires from then on` }
  }
  if ('cron' in spec || spec.count === undefined) return null
  const { count, ...endless } = spec
  if (!firesAt(plainly(endless), at)) return null
  const last = compileSchedule(plainly(spec)).latest(at, spec.anchor - 1)
  if (last === at || last === null) return null
  return { rule: 'count', message: `its ${count} times are used up: the last was at ${isoOf(last)}` }
}

function byExclusion(spec: ResolvedSpec, at: Instant, zone: Zone): WhyNot | null {
  const given = plainly(spec)
  if (spec.exclude === undefined || !firesAt(given, at)) return null
  const index = spec.exclude.findIndex((one) => !firesAt({ ...given, exclude: aloneOf(one) }, at))
  const leavesOut = whatIsLeftOut(spec.exclude[index], zone.localOf(at))
  const message = `exclude[${Math.max(0, index)}] leaves out ${leavesOut}${elsewhere(spec, at, zone)}`
  return { rule: 'exclude', message }
}

/** What a list holds is read once, so that calendars are not read for each time that is asked about. */
const lists = new WeakMap<ResolvedExclusion, readonly ResolvedExclusion[]>()

const aloneOf = (exclusion: ResolvedExclusion): readonly ResolvedExclusion[] =>
  remembered(lists, exclusion, () => [exclusion])

function whatIsLeftOut(exclusion: ResolvedExclusion | undefined, local: LocalTime): string {
  const moment = `${clockText(local)} on ${dayText(local)}`
  if (exclusion === undefined || 'fromAt' in exclusion) return moment
  return 'cron' in exclusion ? `${moment} (${exclusion.cron})` : dayText(local)
}

/** When a time of an excluded day happens instead. */
function elsewhere(spec: ResolvedSpec, at: Instant, zone: Zone): string {
  const { days } = readExclusions(spec.exclude)
  if (spec.onExcluded === undefined || days.isEmpty) return ''
  const [moved = at] = businessDays(plainly(spec), zone, days).movedFrom(at)
  if (moved === at || !firesAt(spec, moved)) return ''
  const local = zone.localOf(moved)
  return `; it fires on ${dayText(local)} at ${clockText(local)} instead`
}

function byRhythm(spec: ResolvedSpec, at: Instant, zone: Zone): WhyNot {
  if ('cron' in spec) {
    const message = whyNotByDst(spec, at, zone)
    if (message !== null) return { rule: 'dst', message }
    return { rule: 'expression', message: whyNotByExpression(spec.cron, zone.localOf(at), at) }
  }
  const schedule = compileSchedule(plainly(spec))
  const around = [schedule.latest(at, spec.anchor - 1), schedule.next(at)].filter((time) => time !== null)
  const times = around.length === 0 ? '' : `, but at ${around.map(isoOf).join(' and ')}`
  return { rule: 'expression', message: `${spec.every} does not fire at ${isoOf(at)}${times}` }
}
