import { nearestName } from '../job/nearest-name.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from './duration.ts'
import { notUnderstood, shown } from './not-understood.ts'

/** Local wall-clock time, held as the milliseconds it would be in UTC. */
export type LocalTime = number

/** The clock on the wall of one zone. */
export interface Zone {
  readonly name: string
  localOf(instant: Instant): LocalTime
  /** A repeated time means its first pass; a time that does not exist means the first instant after the gap. */
  instantOf(local: LocalTime): Instant
}

/** Zones are few; this bounds what odd spellings of them could pile up. */
const MAX_REMEMBERED = 2_000
const zones = new Map<string, Zone>()

/** The zone of an IANA name, or an error that suggests the nearest. */
export function zoneOf(name: string): Zone {
  let zone = zones.get(name)
  if (zone === undefined) {
    zone = makeZone(name)
    if (zones.size >= MAX_REMEMBERED) zones.clear()
    zones.set(name, zone)
  }
  return zone
}

function makeZone(name: string): Zone {
  // Newer runtimes also accept "+02:00", which is an offset and no zone.
  const format = /^[A-Za-z]/.test(name) ? wallClock(name) : undefined
  if (format === undefined) throw unknownZone(name)
  const resolved = format.resolvedOptions().timeZone
  if (resolved === 'UTC') return { name: 'UTC', localOf: (instant) => instant, instantOf: (local) => local }
  // The runtime resolves Asia/Kolkata to its old name; only the case is taken over from it.
  const spelling = resolved.toLowerCase() === name.toLowerCase() ? resolved : name
  return new IntlZone(spelling, format)
}

function wallClock(name: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    })
  } catch {
    return undefined
  }
}

const PARTS = /^(\d\d)\/(\d\d)\/(\d+), (\d\d):(\d\d):(\d\d)$/

class IntlZone implements Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat

  constructor(name: string, format: Intl.DateTimeFormat) {
    this.name = name
    this.#format = format
  }

  localOf(instant: Instant): LocalTime {
    return instant + this.#offsetAt(instant)
  }

  instantOf(local: LocalTime): Instant {
    // No zone is further than a day from UTC, so these two lie on either side of whatever change is near.
    const before = this.#offsetAt(local - DAY_MS)
    const after = this.#offsetAt(local + DAY_MS)
    if (before === after) return local - before
    const early = local - Math.max(before, after)
    const late = local - Math.min(before, after)
    if (this.localOf(early) === local) return early
    if (this.localOf(late) === local) return late
    return this.#changeBetween(early, late)
  }

  /** The first instant with the new offset; the offset is the old one at `early` and the new one at `late`. */
  #changeBetween(early: Instant, late: Instant): Instant {
    const old = this.#offsetAt(early)
    let from = Math.floor(early / 1_000)
    let until = Math.ceil(late / 1_000)
    while (until - from > 1) {
      const middle = Math.floor((from + until) / 2)
      if (this.#offsetAt(middle * 1_000) === old) from = middle
      else until = middle
    }
    return until * 1_000
  }

  #offsetAt(instant: Instant): number {
    const second = Math.floor(instant / 1_000) * 1_000
    const parts = PARTS.exec(this.#format.format(second))
    if (parts === null) throw notUnderstood(`${this.name} has no calendar at ${instant}`)
    const [, month, day, year, hour, minute, seconds] = parts
    const local = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(seconds))
    return local - second
  }
}

function unknownZone(name: string): Error {
  const names = ['UTC', ...Intl.supportedValuesOf('timeZone')]
  const wanted = name.toLowerCase().replaceAll(' ', '_')
  const city = names.find((other) => other.toLowerCase().split('/').at(-1) === wanted)
  const suggestion = city ?? nearestName(name, names)
  const hint = suggestion === undefined ? ': use an IANA name such as "Europe/Berlin"' : ''
  return notUnderstood(`there is no time zone ${shown(name)}${hint}`, suggestion)
}
