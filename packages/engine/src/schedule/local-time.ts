import type { IntervalSpec, ResolvedExclusion, ResolvedSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { CronTimes } from './cron-times.ts'
import { DAY_MS, parseDuration } from './duration.ts'
import { NOTHING_EXCLUDED } from './excluded-times.ts'
import { firingPatterns } from './firing-pattern.ts'
import { type LocalTime, type Stretch, type Zone, zoneOf } from './zone.ts'

export interface FireTimeText {
  utc: string
  /** The clock on the wall of the schedule's zone, with its offset from UTC. */
  local: string
  /** `gap`: the clocks skip the time that it was meant for. `repeat`: the same time comes twice. */
  dst?: 'gap' | 'repeat'
}

export function localTimeOf(spec: ResolvedSpec, at: Instant): FireTimeText {
  const zone = zoneOf(spec.timezone)
  const stretch = zone.stretchAt(at)
  const local = at + stretch.offset
  const text = { utc: isoOf(at), local: `${isoOf(local).slice(0, -1)}${offsetText(stretch.offset)}` }
  if (isRepeated(stretch, local)) return { ...text, dst: 'repeat' }
  return at === stretch.from && standsForGap(spec, zone, stretch) ? { ...text, dst: 'gap' } : text
}

/** Whether the clocks show a local time of a stretch twice: it is in the stretch before too, or in the one after. */
function isRepeated(stretch: Stretch, local: LocalTime): boolean {
  return local < stretch.from + stretch.offsetBefore || local >= stretch.until + stretch.offsetAfter
}

/** Whether a schedule that fires where a gap ends does so for a time that the clocks left out. */
function standsForGap(spec: ResolvedSpec, zone: Zone, stretch: Stretch): boolean {
  if (stretch.offset <= stretch.offsetBefore) return false
  if (!('cron' in spec)) return isIntervalInGap(spec, zone, stretch)
  return firingPatterns(spec.cron).some((pattern) =>
    new CronTimes(pattern, zone, NOTHING_EXCLUDED, spec.dst).firesForGapAt(stretch.from),
  )
}

/** Only days and months are counted on the wall clock, and they keep the time of day of the anchor. */
function isIntervalInGap(spec: IntervalSpec<ResolvedExclusion>, zone: Zone, stretch: Stretch): boolean {
  const { from, offset, offsetBefore } = stretch
  const duration = parseDuration(spec.every)
  if (duration.kind === 'clock' || duration.ms > 0) return false
  const anchor = zone.localOf(spec.anchor)
  const first = from + offsetBefore
  const sinceAnchor = (((first - anchor) % DAY_MS) + DAY_MS) % DAY_MS
  const inGap = sinceAnchor === 0 ? first : first + DAY_MS - sinceAnchor
  return inGap < from + offset
}

/** Without milliseconds where there are none. */
export function isoOf(at: Instant): string {
  return new Date(at).toISOString().replace('.000Z', 'Z')
}

function offsetText(offsetMs: number): string {
  const seconds = Math.abs(offsetMs) / 1_000
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60]
  // Offsets with seconds are history; the last ended in 1972.
  if (parts[2] === 0) parts.pop()
  return `${offsetMs < 0 ? '-' : '+'}${parts.map((part) => String(part).padStart(2, '0')).join(':')}`
}
