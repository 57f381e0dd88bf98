import type { IntervalSpec } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS, type Duration, parseDuration } from './duration.ts'
import { notUnderstood, shown } from './not-understood.ts'
import { countFireTimes, END_OF_TIME, type Schedule } from './schedule.ts'
import { type LocalTime, type Zone, zoneOf } from './zone.ts'

const SHORTEST_MS = 1_000
const MONTH_MS = 30.436_875 * DAY_MS

/**
 * The anchor is fire time 0, and fire time k is counted from it, never from the one before: nothing drifts, and the 31st
 * comes back after February. Clock durations are elapsed time; the date part of others is counted on the zone's calendar.
 */
export class IntervalSchedule implements Schedule {
  readonly #anchor: Instant
  readonly #duration: Duration
  readonly #zone: Zone
  readonly #localAnchor: LocalTime
  readonly #averageMs: number
  /** Fire times at and after this do not happen. */
  readonly #endAt: Instant
  readonly #indexes: number

  constructor(spec: Omit<IntervalSpec, 'exclude'>) {
    this.#duration = readInterval(spec.every)
    this.#zone = zoneOf(spec.timezone)
    this.#anchor = spec.anchor
    this.#localAnchor = this.#zone.localOf(spec.anchor)
    this.#averageMs = averageMs(this.#duration)
    this.#endAt = Math.min(spec.endAt ?? END_OF_TIME, END_OF_TIME)
    this.#indexes = spec.count ?? Number.POSITIVE_INFINITY
  }

  /** At most; days with 25 hours apart. */
  get timesPerDay(): number {
    return this.#duration.kind === 'clock' ? Math.ceil(DAY_MS / this.#duration.ms) : 1
  }

  next(after: Instant): Instant | null {
    if (after >= this.#endAt) return null
    const index = this.#indexAfter(after)
    if (index >= this.#indexes) return null
    const fire = this.#fire(index)
    return fire < this.#endAt ? fire : null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    const index = Math.min(this.#indexAfter(Math.min(atOrBefore, this.#endAt - 1)), this.#indexes) - 1
    if (index < 0) return null
    const fire = this.#fire(index)
    return fire > after ? fire : null
  }

  count(after: Instant, until: Instant, limit: number): number {
    // Two dates may be one fire time: Samoa once left out a day.
    if (this.#duration.kind === 'date') return countFireTimes(this, after, until, limit)
    const last = Math.min(this.#indexAfter(Math.min(until, this.#endAt - 1)), this.#indexes)
    return Math.max(0, Math.min(limit, last - this.#indexAfter(after)))
  }

  /** The local time that it fires for at an instant: dates keep the time of day of the anchor, also where the clocks skip it. */
  meantAt(at: Instant): LocalTime[] {
    const { kind, ms } = this.#duration
    if (kind === 'clock' || ms > 0) return [this.#zone.localOf(at)]
    const { from, offset, offsetBefore } = this.#zone.stretchAt(at)
    const shown = at + offset
    if (at !== from || offset <= offsetBefore) return [shown]
    const timeOfDay = (((this.#localAnchor - shown) % DAY_MS) + DAY_MS) % DAY_MS
    const meant = timeOfDay === 0 ? shown : shown + timeOfDay - DAY_MS
    return [meant >= at + offsetBefore ? meant : shown]
  }

  /** The index of the first fire time after an instant. The estimate is off by one or two at most. */
  #indexAfter(after: Instant): number {
    let index = Math.max(0, Math.floor((Math.min(after, END_OF_TIME) - this.#anchor) / this.#averageMs) + 1)
    while (index > 0 && this.#fire(index - 1) > after) index--
    while (this.#fire(index) <= after && this.#fire(index) < END_OF_TIME) index++
    return index
  }

  #fire(index: number): Instant {
    const duration = this.#duration
    if (duration.kind === 'clock') return this.#anchor + index * duration.ms
    const date = addMonths(this.#localAnchor, index * duration.months) + index * duration.days * DAY_MS
    // Far beyond the end the calendar has no answer, and needs none.
    if (!(date < END_OF_TIME)) return END_OF_TIME
    return this.#zone.instantOf(date) + index * duration.ms
  }
}

/** An interval fit for a schedule. */
export function readInterval(text: unknown): Duration {
  const duration = parseDuration(text)
  if (averageMs(duration) < SHORTEST_MS) throw notUnderstood(`${shown(text)} is shorter than a second`, 'PT1S')
  return duration
}

function averageMs(duration: Duration): number {
  return duration.kind === 'clock' ? duration.ms : duration.months * MONTH_MS + duration.days * DAY_MS + duration.ms
}

/** Keeps the time of day, and the day of the month where the month has it; else its last day. */
function addMonths(local: LocalTime, months: number): LocalTime {
  if (months === 0) return local
  const date = new Date(local)
  const month = date.getUTCMonth() + months
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate()
  const timeOfDay = local - Math.floor(local / DAY_MS) * DAY_MS
  return Date.UTC(date.getUTCFullYear(), month, Math.min(date.getUTCDate(), lastDay)) + timeOfDay
}
