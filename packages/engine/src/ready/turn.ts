import type { Instant } from '../runtime/clock.ts'

/** One level of priority is worth this head start in time, so that nothing starves. */
export const PRIORITY_STEP_US = 30_000_000
const DEFAULT_PRIORITY = 5

/**
 * A turn is microseconds of virtual time: the smaller, the sooner. It is given when a run becomes ready, never before, and
 * rises strictly within a node, so that runs made ready in one millisecond keep their order.
 */
export class Turns {
  #last = 0

  next(now: Instant, priority: number): number {
    this.#last = Math.max(this.#last + 1, now * 1_000)
    return this.#last - (priority - DEFAULT_PRIORITY) * PRIORITY_STEP_US
  }
}
