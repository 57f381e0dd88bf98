import type { Instant } from '../runtime/clock.ts'
import { isIanaName, unknownZone } from './zone-names.ts'
import { wallClock, ZoneOffsets } from './zone-offsets.ts'
import { type Stretch, ZoneYears } from './zone-years.ts'

export type { Stretch } from './zone-years.ts'

/** Local wall-clock time, held as the milliseconds it would be in UTC. */
export type LocalTime = number

/** The clock on the wall of one zone. */
export interface Zone {
  readonly name: string
  localOf(instant: Instant): LocalTime
  /** A repeated time means its first pass; a time that does not exist means the first instant after the gap. */
  instantOf(local: LocalTime): Instant
  /** The stretch that an instant lies in. The one after it may have the same offset. */
  stretchAt(instant: Instant): Stretch
}

/** No zone has ever been further than this from UTC, and none has changed by more than a day. */
export const MAX_OFFSET_MS = 26 * 3_600_000

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
  // The runtime accepts more, such as "+02:00", which is an offset and no zone.
  const format = isIanaName(name) ? wallClock(name) : undefined
  if (format === undefined) throw unknownZone(name)
  const resolved = format.resolvedOptions().timeZone
  if (resolved === 'UTC') return UTC
  // The runtime resolves Asia/Kolkata to its old name; only the case is taken over from it.
  const spelling = resolved.toLowerCase() === name.toLowerCase() ? resolved : name
  return new IntlZone(spelling, format)
}

const UTC: Zone = {
  name: 'UTC',
  localOf: (instant) => instant,
  instantOf: (local) => local,
  stretchAt: () => UTC_STRETCH,
}
const UTC_STRETCH: Stretch = {
  from: Number.NEGATIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
  offset: 0,
  offsetBefore: 0,
  offsetAfter: 0,
}

class IntlZone implements Zone {
  readonly name: string
  readonly #years: ZoneYears
  #last: Stretch | undefined

  constructor(name: string, format: Intl.DateTimeFormat) {
    this.name = name
    this.#years = new ZoneYears(new ZoneOffsets(name, format))
  }

  localOf(instant: Instant): LocalTime {
    return instant + this.stretchAt(instant).offset
  }

  instantOf(local: LocalTime): Instant {
    let stretch = this.stretchAt(local - MAX_OFFSET_MS)
    while (local >= stretch.until + stretch.offset) stretch = this.stretchAt(stretch.until)
    return Math.max(stretch.from, local - stretch.offset)
  }

  stretchAt(instant: Instant): Stretch {
    const last = this.#last
    if (last !== undefined && instant >= last.from && instant < last.until) return last
    const found = this.#years.stretchAt(instant)
    this.#last = found
    return found
  }
}
