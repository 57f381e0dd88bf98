import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from './schedule.ts'

/** Two are kept: the coming times, and those that a late job or a catch-up asks for. */
const STRETCHES = 2
/** A stretch that grows past this forgets its older half. */
const MAX_TIMES = 64

/**
 * A stretch of time whose fire times are all known: `times` are exactly those in (from, last of times], in order. `over`:
 * nothing fires after the last one (nor, if there is none, after `from`).
 */
interface Stretch {
  from: Instant
  times: Instant[]
  over: boolean
}

/**
 * A schedule that remembers its answers. In a storm many jobs ask the same few questions of the same expression, and the
 * calendar is only asked for what has not been asked before.
 */
export class RememberedSchedule implements Schedule {
  readonly #schedule: Schedule
  /** The one used last comes first. */
  #stretches: Stretch[] = []
  #counted: { first: Instant; last: Instant; count: number; isAll: boolean } | undefined

  constructor(schedule: Schedule) {
    this.#schedule = schedule
  }

  next(after: Instant): Instant | null {
    const stretch = this.#known(after) ?? this.#begin(after, [])
    return stretch.times[firstAfter(stretch.times, after)] ?? null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    if (atOrBefore <= after) return null
    const known = this.#known(atOrBefore)
    if (known !== undefined) {
      const fire = known.times[firstAfter(known.times, atOrBefore) - 1]
      if (fire !== undefined) return fire > after ? fire : null
      if (known.from <= after) return null
    }
    const fire = this.#schedule.latest(atOrBefore, after)
    // Nothing fires between the answer (or `after`) and `atOrBefore`, so a stretch that covers it can begin there.
    if (fire === null) this.#begin(after, [])
    else this.#begin(fire - 1, [fire])
    return fire
  }

  count(after: Instant, until: Instant, limit: number): number {
    const first = this.next(after)
    const last = this.latest(until, after)
    if (first === null || last === null || limit <= 0) return 0
    const known = this.#counted
    if (known?.first === first && known.last === last && (known.isAll || limit <= known.count)) {
      return Math.min(limit, known.count)
    }
    const count = this.#schedule.count(after, until, limit)
    this.#counted = { first, last, count, isAll: count < limit }
    return count
  }

  /** The stretch that knows what comes after an instant, made longer by one if that is enough. */
  #known(after: Instant): Stretch | undefined {
    const stretches = this.#stretches
    for (let i = 0; i < stretches.length; i++) {
      if (covers(stretches[i] as Stretch, after)) return this.#use(i)
    }
    for (let i = 0; i < stretches.length; i++) {
      if (this.#grow(stretches[i] as Stretch, after)) return this.#use(i)
    }
    return undefined
  }

  /** Adds the one fire time that follows, if that is enough to cover `after`. */
  #grow(stretch: Stretch, after: Instant): boolean {
    const last = stretch.times.at(-1)
    if (last === undefined || after < last || stretch.over) return false
    const fire = this.#schedule.next(last)
    if (fire === null) {
      stretch.over = true
      return true
    }
    if (stretch.times.length >= MAX_TIMES) {
      const forgotten = stretch.times.splice(0, MAX_TIMES / 2)
      stretch.from = forgotten.at(-1) as Instant
    }
    stretch.times.push(fire)
    return fire > after
  }

  /** All fire times from `from` to the last of `times` are known; the one that follows is asked for. */
  #begin(from: Instant, times: Instant[]): Stretch {
    const fire = this.#schedule.next(times.at(-1) ?? from)
    if (fire !== null) times.push(fire)
    const stretch = { from, times, over: fire === null }
    this.#stretches.unshift(stretch)
    if (this.#stretches.length > STRETCHES) this.#stretches.pop()
    return stretch
  }

  #use(index: number): Stretch {
    const stretch = this.#stretches[index] as Stretch
    if (index > 0) {
      this.#stretches.splice(index, 1)
      this.#stretches.unshift(stretch)
    }
    return stretch
  }
}

function covers({ from, times, over }: Stretch, after: Instant): boolean {
  return after >= from && (over || (times.length > 0 && after < (times[times.length - 1] as Instant)))
}

/** The index of the first time after an instant. */
function firstAfter(times: readonly Instant[], after: Instant): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] as Instant) <= after) low = middle + 1
    else high = middle
  }
  return low
}
