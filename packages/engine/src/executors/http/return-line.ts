import type { Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'

/** No run is put aside for longer: things change. */
export const LONGEST_AWAY_MS = 300_000

/**
 * The line of runs that were sent away and come back: one behind the other, so many a second, so that they are no storm
 * when there is room again. A run that comes back too early goes to its end. A place in it promises nothing.
 */
export class ReturnLine {
  readonly #longestMs: number
  #last: Instant = 0

  /** No run is sent away for longer than that after the instant from which on it may come. */
  constructor(longestMs = LONGEST_AWAY_MS) {
    this.#longestMs = longestMs
  }

  next(notBefore: Instant, perSecond: number, random: Random): Instant {
    const at = Math.max(notBefore, this.#last + 1_000 / perSecond)
    if (at - notBefore > this.#longestMs) return Math.round(notBefore + this.#longestMs * (0.5 + random.float() / 2))
    this.#last = at
    return Math.round(at)
  }

  /** The line begins anew: runs that are still to come come as they were told. */
  clear(): void {
    this.#last = 0
  }
}
