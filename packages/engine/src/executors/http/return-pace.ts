import type { Instant } from '../../runtime/clock.ts'

const LOOK_EVERY_MS = 1_000
/** No run was found that waits: other nodes may have sent some away. */
const LOOK_SELDOM_MS = 30_000
const GROWTH = 1.5
const MAX_PER_SECOND = 1_000

/**
 * How many a second come back of the runs that were sent away because all slots were taken: more and more as long as none has
 * to be sent away again, else as many as calls end. So a target that gets quicker is used, and one that gets slower is no storm.
 */
export class ReturnPace {
  #perSecond = 1
  #ended = 0
  #away = 0
  #since: Instant = 0
  #lookAt: Instant = 0

  ended(): void {
    this.#ended++
  }

  sentAway(now: Instant): void {
    this.#away++
    this.#lookAt = Math.min(this.#lookAt, now + LOOK_EVERY_MS)
  }

  get perSecond(): number {
    return this.#perSecond
  }

  /** How many are to be called back within the next second; 0: none, as long as nothing ends. */
  wanted(now: Instant): number {
    if (now < this.#lookAt || this.#ended === 0) return 0
    const seconds = Math.min(2, Math.max(1, (now - this.#since) / 1_000))
    const ends = Math.ceil(this.#ended / seconds)
    const grown = Math.ceil(Math.max(this.#perSecond, ends) * GROWTH)
    this.#perSecond = Math.min(MAX_PER_SECOND, this.#away > 0 ? ends : grown)
    this.#since = now
    this.#ended = 0
    this.#away = 0
    return this.#perSecond
  }

  /** Whether as many were found as were wanted. */
  found(count: number, now: Instant): void {
    this.#lookAt = now + (count < this.#perSecond ? LOOK_SELDOM_MS : LOOK_EVERY_MS)
  }
}
