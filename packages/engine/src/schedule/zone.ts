import { nearestName } from '../job/nearest-name.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from './duration.ts'
import { notUnderstood, shown } from './not-understood.ts'
import { BEGIN_OF_TIME, END_OF_TIME } from './schedule.ts'

/** Local wall-clock time, held as the milliseconds it would be in UTC. */
export type LocalTime = number

/** A stretch of time in which the offset of a zone does not change. */
export interface Stretch {
  from: Instant
  /** The first instant that is no longer in it. */
  until: Instant
  /** Local time minus UTC, in milliseconds. */
  offset: number
  /** The offset just before `from`: greater where the clocks go back then, smaller where they leave something out. */
  offsetBefore: number
  /** The offset from `until` on. */
  offsetAfter: number
}

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

const SECOND_MS = 1_000
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
  if (resolved === 'UTC') return UTC
  // The runtime resolves Asia/Kolkata to its old name; only the case is taken over from it.
  const spelling = resolved.toLowerCase() === name.toLowerCase() ? resolved : name
  return new IntlZone(spelling, format)
}

/** Day and time of day say all about an offset, and are the cheapest to ask for. */
function wallClock(name: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch {
    return undefined
  }
}

const ALWAYS = { from: Number.NEGATIVE_INFINITY, until: Number.POSITIVE_INFINITY }
const UTC: Zone = {
  name: 'UTC',
  localOf: (instant) => instant,
  instantOf: (local) => local,
  stretchAt: () => UTC_STRETCH,
}
const UTC_STRETCH: Stretch = { ...ALWAYS, offset: 0, offsetBefore: 0, offsetAfter: 0 }

/** Offsets are looked up for so long a time at once. */
const CHUNK_MS = 400 * DAY_MS
/** Two changes of a zone that are nearer than this would be missed. From 1970 to 2100 the nearest are almost a week apart. */
const PROBE_MS = 2 * DAY_MS
/** Few questions concern more than a few years. 64 chunks take about 20 KB. */
const MAX_CHUNKS = 64
/** Before and after these, nothing fires and nothing changes. */
const FIRST_CHUNK = Math.floor(BEGIN_OF_TIME / CHUNK_MS)
const LAST_CHUNK = Math.ceil(END_OF_TIME / CHUNK_MS)

const PARTS = /^(\d+), (\d+):(\d+):(\d+)$/

/** Changes of the clocks are found by asking the runtime for every other day, once per chunk, and remembered. */
class IntlZone implements Zone {
  readonly name: string
  readonly #format: Intl.DateTimeFormat
  readonly #chunks = new Map<number, readonly Stretch[]>()
  #last: Stretch | undefined

  constructor(name: string, format: Intl.DateTimeFormat) {
    this.name = name
    this.#format = format
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
    const chunk = Math.min(LAST_CHUNK, Math.max(FIRST_CHUNK, Math.floor(instant / CHUNK_MS)))
    const stretches = this.#chunks.get(chunk) ?? this.#look(chunk)
    const found = stretches.find(({ until }) => instant < until) as Stretch
    this.#last = found
    return found
  }

  #look(chunk: number): readonly Stretch[] {
    const begin = chunk * CHUNK_MS
    const end = begin + CHUNK_MS
    const stretches: Stretch[] = []
    let from = chunk === FIRST_CHUNK ? ALWAYS.from : begin
    let offset = this.#offsetAt(begin)
    let offsetBefore = chunk === FIRST_CHUNK ? offset : this.#offsetAt(begin - 1)
    for (let probe = begin + PROBE_MS; probe <= end; probe += PROBE_MS) {
      const offsetAfter = this.#offsetAt(probe)
      if (offsetAfter === offset) continue
      const until = this.#changeBetween(probe - PROBE_MS, probe)
      // A change exactly at the end begins the next chunk.
      if (until === end) break
      stretches.push({ from, until, offset, offsetBefore, offsetAfter })
      from = until
      offsetBefore = offset
      offset = offsetAfter
    }
    const isLast = chunk === LAST_CHUNK
    const offsetAfter = isLast ? offset : this.#offsetAt(end)
    stretches.push({ from, until: isLast ? ALWAYS.until : end, offset, offsetBefore, offsetAfter })
    if (this.#chunks.size >= MAX_CHUNKS) this.#chunks.clear()
    this.#chunks.set(chunk, stretches)
    return stretches
  }

  /** The first second with the new offset; the offset is the old one at `early` and the new one at `late`. */
  #changeBetween(early: Instant, late: Instant): Instant {
    const old = this.#offsetAt(early)
    let from = early / SECOND_MS
    let until = late / SECOND_MS
    while (until - from > 1) {
      const middle = Math.floor((from + until) / 2)
      if (this.#offsetAt(middle * SECOND_MS) === old) from = middle
      else until = middle
    }
    return until * SECOND_MS
  }

  #offsetAt(instant: Instant): number {
    const date = new Date(Math.floor(instant / SECOND_MS) * SECOND_MS)
    const parts = PARTS.exec(this.#format.format(date))
    if (parts === null) throw notUnderstood(`${this.name} has no calendar at ${instant}`)
    const day = Number(parts[1]) - date.getUTCDate()
    // A zone is on the same day as UTC, the day before or the day after; the 1st comes after the 31st.
    const days = Math.abs(day) > 1 ? -Math.sign(day) : day
    const local = Number(parts[2]) * 3_600 + Number(parts[3]) * 60 + Number(parts[4])
    const utc = date.getUTCHours() * 3_600 + date.getUTCMinutes() * 60 + date.getUTCSeconds()
    return (days * 86_400 + local - utc) * SECOND_MS
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
