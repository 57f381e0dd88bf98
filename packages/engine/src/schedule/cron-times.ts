import type { DstPolicy } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { CronPattern } from './cron-pattern.ts'
import { SECOND_MS } from './duration.ts'
import type { ExcludedTimes } from './excluded-times.ts'
import { countFireTimes, END_OF_TIME, type Schedule } from './schedule.ts'
import { openTimes, WallTimes } from './wall-times.ts'
import { type LocalTime, MAX_OFFSET_MS, type Stretch, type Zone } from './zone.ts'

export type FullDstPolicy = Required<DstPolicy>

/** The hour field decides what a change of the clocks does, unless the schedule says so itself. */
export function dstPolicyOf(pattern: CronPattern, asked: DstPolicy | undefined): FullDstPolicy {
  const usual: FullDstPolicy = pattern.hasFixedHours
    ? { gap: 'after', overlap: 'first' }
    : { gap: 'skip', overlap: 'both' }
  return { ...usual, ...asked }
}

/**
 * The instants at which one expression fires in one zone. Each local time that matches is one instant; where the clocks go
 * back, two, of which the policy takes the first, the last or both; where they leave it out, none, or the first instant
 * after the gap. The fire times are the set of all of them, so two times of one gap are one fire time.
 *
 * Searched stretch by stretch of constant offset. `from` and `until` of a stretch tell what it repeats of the one before,
 * what the one after repeats of it, and what was left out before it.
 */
export class CronTimes implements Schedule {
  readonly #zone: Zone
  readonly #policy: FullDstPolicy
  readonly #walls: WallTimes
  readonly #excluded: ExcludedTimes
  /** Whatever is not left out; null if nothing is. */
  readonly #open: WallTimes | null

  constructor(pattern: CronPattern, zone: Zone, excluded: ExcludedTimes, dst?: DstPolicy) {
    this.#zone = zone
    this.#policy = dstPolicyOf(pattern, dst)
    this.#walls = new WallTimes(pattern, excluded)
    this.#excluded = excluded
    this.#open = excluded.isEmpty ? null : openTimes(excluded)
  }

  next(after: Instant): Instant | null {
    let from = (Math.floor(after / SECOND_MS) + 1) * SECOND_MS
    const searchUntil = Math.min(this.#excluded.searchUntil(from), END_OF_TIME + MAX_OFFSET_MS)
    while (from < searchUntil) {
      const stretch = this.#zone.stretchAt(from)
      if (from === stretch.from && this.#firesAfterGap(stretch)) return from
      const start = Math.max(from + stretch.offset, this.#firstLocal(stretch))
      const local = this.#walls.next(start, searchUntil)
      if (local !== null && local < this.#endLocal(stretch)) return local - stretch.offset
      // Nothing from `start` to `local` matches. What lies before `start` may only come again where the clocks go back.
      const isPast = start <= stretch.until + stretch.offsetAfter
      if (isPast && local === null) return null
      from = isPast ? Math.max(stretch.until, (local as LocalTime) - MAX_OFFSET_MS) : stretch.until
    }
    return null
  }

  latest(atOrBefore: Instant, after: Instant): Instant | null {
    let until = Math.floor(atOrBefore / SECOND_MS) * SECOND_MS
    const searchFrom = Math.max(this.#excluded.searchFrom(until), after - MAX_OFFSET_MS)
    while (until > after) {
      const stretch = this.#zone.stretchAt(until)
      const end = Math.min(until + stretch.offset, this.#endLocal(stretch) - SECOND_MS)
      const local = this.#walls.previous(end, searchFrom)
      let found: Instant | null = null
      if (local !== null && local >= this.#firstLocal(stretch)) found = local - stretch.offset
      else if (this.#firesAfterGap(stretch)) found = stretch.from
      if (found !== null) return found > after ? found : null
      // Nothing from `local` to `end` matches. What lies after `end` may only have been before where the clocks went back.
      const isAhead = end >= stretch.from + stretch.offsetBefore - SECOND_MS
      if (isAhead && local === null) return null
      const last = stretch.from - SECOND_MS
      until = isAhead ? Math.min(last, (local as LocalTime) + MAX_OFFSET_MS) : last
    }
    return null
  }

  count(after: Instant, until: Instant, limit: number): number {
    return countFireTimes(this, after, until, limit)
  }

  /** Whether it fires at an instant for a local time that the clocks leave out there. */
  firesForGapAt(at: Instant): boolean {
    const stretch = this.#zone.stretchAt(at)
    return stretch.from === at && this.#firesAfterGap(stretch)
  }

  /** The local times that it fires for at an instant: those that the clocks leave out there, and the one they show. */
  meantAt(at: Instant): LocalTime[] {
    const { offset, offsetBefore } = this.#zone.stretchAt(at)
    const shown = at + offset
    const meant: LocalTime[] = []
    if (this.firesForGapAt(at)) {
      let local = this.#walls.next(at + offsetBefore, shown)
      for (; local !== null; local = this.#walls.next(local + SECOND_MS, shown)) meant.push(local)
    }
    if (this.#walls.has(shown)) meant.push(shown)
    return meant
  }

  /** The first local time of a stretch that counts. */
  #firstLocal({ from, offset, offsetBefore }: Stretch): LocalTime {
    return from + (this.#policy.overlap === 'first' ? Math.max(offset, offsetBefore) : offset)
  }

  /** The first local time that counts no longer. */
  #endLocal({ until, offset, offsetAfter }: Stretch): LocalTime {
    return until + (this.#policy.overlap === 'last' ? Math.min(offset, offsetAfter) : offset)
  }

  /** A time that is left out stays so, and so does the instant that it would fire at. */
  #firesAfterGap({ from, offset, offsetBefore }: Stretch): boolean {
    if (offset <= offsetBefore || this.#policy.gap === 'skip') return false
    if (this.#walls.next(from + offsetBefore, from + offset) === null) return false
    return this.#open === null || this.#open.has(from + offset)
  }
}
