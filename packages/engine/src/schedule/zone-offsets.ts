import type { Instant } from '../runtime/clock.ts'
import { SECOND_MS } from './duration.ts'
import { notUnderstood } from './not-understood.ts'

const PARTS = /^(\d+), (\d+):(\d+):(\d+)$/

/** Day and time of day say all about an offset, and are the cheapest to ask for. */
export function wallClock(name: string): Intl.DateTimeFormat | undefined {
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

/** The offsets of a zone from UTC, as the runtime says them: some microseconds for each question. */
export class ZoneOffsets {
  readonly #name: string
  readonly #format: Intl.DateTimeFormat

  constructor(name: string, format: Intl.DateTimeFormat) {
    this.#name = name
    this.#format = format
  }

  readonly at = (instant: Instant): number => {
    const date = new Date(Math.floor(instant / SECOND_MS) * SECOND_MS)
    const parts = PARTS.exec(this.#format.format(date))
    if (parts === null) throw notUnderstood(`${this.#name} has no calendar at ${instant}`)
    const day = Number(parts[1]) - date.getUTCDate()
    // A zone is on the same day as UTC, the day before or the day after; the 1st comes after the 31st.
    const days = Math.abs(day) > 1 ? -Math.sign(day) : day
    const local = Number(parts[2]) * 3_600 + Number(parts[3]) * 60 + Number(parts[4])
    const utc = date.getUTCHours() * 3_600 + date.getUTCMinutes() * 60 + date.getUTCSeconds()
    return (days * 86_400 + local - utc) * SECOND_MS
  }

  /** The first second with the new offset; the offset is the old one at `early` and the new one at `late`. */
  changeBetween(early: Instant, late: Instant): Instant {
    const old = this.at(early)
    let from = early / SECOND_MS
    let until = late / SECOND_MS
    while (until - from > 1) {
      const middle = Math.floor((from + until) / 2)
      if (this.at(middle * SECOND_MS) === old) from = middle
      else until = middle
    }
    return until * SECOND_MS
  }
}
