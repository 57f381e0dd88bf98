import type { Instant } from '../runtime/clock.ts'
import { CronTimes } from './cron-times.ts'
import { SECOND_MS } from './duration.ts'
import type { ExcludedTimes } from './excluded-times.ts'
import type { Closed } from './excluding-schedule.ts'
import { EVERY_SECOND } from './wall-times.ts'
import type { Zone } from './zone.ts'

/** Half-open. */
export interface InstantRange {
  fromAt: Instant
  toAt: Instant
}

/** Ranges of instants that are left out. */
export class ClosedRanges implements Closed {
  /** In order, and neither touching nor overlapping. */
  readonly #ranges: readonly InstantRange[]

  constructor(ranges: readonly InstantRange[]) {
    const merged: InstantRange[] = []
    for (const range of [...ranges].sort((one, other) => one.fromAt - other.fromAt)) {
      const last = merged.at(-1)
      if (last !== undefined && range.fromAt <= last.toAt) last.toAt = Math.max(last.toAt, range.toAt)
      else merged.push({ ...range })
    }
    this.#ranges = merged
  }

  openFrom(at: Instant): Instant {
    return this.#rangeAt(at)?.toAt ?? at
  }

  openUntil(at: Instant): Instant {
    const range = this.#rangeAt(at)
    return range === undefined ? at : range.fromAt - 1
  }

  #rangeAt(at: Instant): InstantRange | undefined {
    return this.#ranges.find(({ fromAt, toAt }) => fromAt <= at && at < toAt)
  }
}

/** Days and patterns that are left out, on the clock of a zone: all seconds but those. */
export class ClosedOnTheWall implements Closed {
  readonly #open: CronTimes

  constructor(zone: Zone, excluded: ExcludedTimes) {
    this.#open = new CronTimes(EVERY_SECOND, zone, excluded)
  }

  openFrom(at: Instant): Instant | null {
    const second = this.#open.next(Math.floor(at / SECOND_MS) * SECOND_MS - 1)
    return second === null ? null : Math.max(at, second)
  }

  openUntil(at: Instant): Instant | null {
    const second = this.#open.latest(at, Number.NEGATIVE_INFINITY)
    return second === null ? null : Math.min(at, second + SECOND_MS - 1)
  }
}
