import type { Instant } from '../../src/runtime/clock.ts'

const HOUR = 3_600_000

interface Change {
  at: Instant
  before: number
  after: number
}

/**
 * The clock on the wall of one zone, for the auditor alone: it asks the runtime for offsets, hour by hour, and shares
 * nothing with what the engine computes fire times by.
 */
export class WallClock {
  readonly #changes: Change[] = []
  readonly #first: number
  readonly #offsets: Set<number>

  constructor(zone: string, from: Instant, to: Instant) {
    const offsetText = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
    const offsetAt = (at: Instant): number => {
      const [, sign, hours, minutes, seconds = '0'] =
        /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(offsetText.format(at)) ?? []
      if (sign === undefined) return 0
      return (sign === '-' ? -1_000 : 1_000) * (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds))
    }
    const whole = Math.floor(from / HOUR) * HOUR
    this.#first = offsetAt(whole)
    for (let at = whole, before = this.#first; at < to; at += HOUR) {
      const after = offsetAt(at + HOUR)
      if (after !== before) this.#changes.push({ at: momentOf(at, at + HOUR, offsetAt), before, after })
      before = after
    }
    this.#offsets = new Set([this.#first, ...this.#changes.map(({ after }) => after)])
  }

  localOf(at: Instant): number {
    return at + this.#offsetAt(at)
  }

  /** The instants at which the wall shows this: none in a gap, two in a repeated hour. */
  instantsOf(local: number): Instant[] {
    if (this.#changes.length === 0) return [local - this.#first]
    return [...this.#offsets]
      .map((offset) => local - offset)
      .filter((at) => this.localOf(at) === local)
      .sort((a, b) => a - b)
  }

  /** The first instant after the gap that this time would have been in. */
  afterGap(local: number): Instant {
    const gap = this.#changes.find(({ at, before, after }) => at + before <= local && local < at + after)
    if (gap === undefined) throw new Error(`${new Date(local).toISOString()} is in no gap`)
    return gap.at
  }

  #offsetAt(at: Instant): number {
    return this.#changes.findLast((change) => change.at <= at)?.after ?? this.#first
  }
}

function momentOf(from: Instant, to: Instant, offsetAt: (at: Instant) => number): Instant {
  const old = offsetAt(from)
  let [low, high] = [from, to]
  while (high - low > 1_000) {
    const middle = low + Math.floor((high - low) / 2_000) * 1_000
    if (offsetAt(middle) === old) low = middle
    else high = middle
  }
  return high
}
