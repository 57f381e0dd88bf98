import type { Clock, Instant } from '../../runtime/clock.ts'

/** A wait of at least so long may end a little early, together with others. */
const LONG_MS = 10_000
const TICK_MS = 500

/**
 * When calls have waited long enough. Of a thousand workers that wait for work one comes back every thirty milliseconds: each
 * alone would find the processor asleep and its caches cold, which costs several times as much as the call. So long waits end on
 * the half second before, all at once, and are begun again together.
 */
export class WaitEnds {
  readonly #clock: Clock
  readonly #ticks = new Map<Instant, Tick>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `end` once, when `waitMs` are over or up to half a second before. */
  after(waitMs: number, end: () => void): { cancel(): void } {
    if (waitMs < LONG_MS) return this.#clock.timer(waitMs, end)
    const now = this.#clock.now()
    const at = Math.floor((now + waitMs) / TICK_MS) * TICK_MS
    const tick = this.#ticks.get(at) ?? this.#begin(at, at - now)
    tick.ends.add(end)
    return {
      cancel: () => {
        tick.ends.delete(end)
        if (tick.ends.size > 0 || this.#ticks.get(at) !== tick) return
        this.#ticks.delete(at)
        tick.timer.cancel()
      },
    }
  }

  #begin(at: Instant, waitMs: number): Tick {
    const ends = new Set<() => void>()
    const timer = this.#clock.timer(waitMs, () => {
      this.#ticks.delete(at)
      for (const end of ends) end()
    })
    const tick = { ends, timer }
    this.#ticks.set(at, tick)
    return tick
  }
}

interface Tick {
  ends: Set<() => void>
  timer: { cancel(): void }
}
