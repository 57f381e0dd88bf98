/** Milliseconds since the epoch, whole. The only form in which the engine holds time. */
export type Instant = number

/**
 * The node's idea of the database's clock. It never steps back, and no promise depends on it: whatever must be exact is
 * compared in the database.
 */
export interface Clock {
  now(): Instant
  /** Tells what the database's clock said and how long the question took; answers the instant to treat as the database's own. */
  observe(databaseNow: Instant, roundTripMs: number): Instant
  /** Calls `wake` once, `ms` from now. */
  timer(ms: number, wake: () => void): { cancel(): void }
}

/** How far a sample may move the clock per second of real time: it slews instead of stepping. */
const SLEW_MS_PER_S = 50
/** Beyond this the first samples are taken over at once, and later ones are reported. */
const JUMP_MS = 1_000

export interface SystemClockEvents {
  /** The database's clock and ours have come apart by more than a second since the last sample. */
  onJump(offsetMs: number): void
}

/** Monotonic time plus the offset to the database, learnt from the pulse. */
export class SystemClock implements Clock {
  readonly #origin = Date.now() - performance.now()
  readonly #events: SystemClockEvents
  #offset = 0
  #target = 0
  #slewedAt = performance.now()
  #calibrated = false
  #bestRoundTrip = Number.POSITIVE_INFINITY
  #last = 0

  constructor(events: SystemClockEvents = { onJump: () => {} }) {
    this.#events = events
  }

  now(): Instant {
    const monotonic = performance.now()
    this.#slew(monotonic)
    const now = Math.floor(this.#origin + monotonic + this.#offset)
    this.#last = Math.max(this.#last, now)
    return this.#last
  }

  observe(databaseNow: Instant, roundTripMs: number): Instant {
    const monotonic = performance.now()
    const sample = databaseNow + roundTripMs / 2 - (this.#origin + monotonic)
    const moved = sample - this.#target
    if (!this.#calibrated) {
      this.#calibrated = true
      this.#offset = sample
      this.#target = sample
      this.#bestRoundTrip = roundTripMs
    } else if (Math.abs(moved) > JUMP_MS) {
      this.#events.onJump(moved)
      this.#target = sample
      this.#bestRoundTrip = roundTripMs
    } else if (roundTripMs <= this.#bestRoundTrip) {
      this.#target = sample
      this.#bestRoundTrip = roundTripMs
    } else {
      // The best sample ages, so that a drifting clock is followed even if no quicker answer ever comes.
      this.#bestRoundTrip *= 1.1
    }
    return databaseNow
  }

  timer(ms: number, wake: () => void): { cancel(): void } {
    const handle = setTimeout(wake, ms)
    return { cancel: () => clearTimeout(handle) }
  }

  #slew(monotonic: number): void {
    const allowance = ((monotonic - this.#slewedAt) / 1_000) * SLEW_MS_PER_S
    const missing = this.#target - this.#offset
    this.#offset += Math.sign(missing) * Math.min(Math.abs(missing), allowance)
    this.#slewedAt = monotonic
  }
}

/** Time that moves only when told to: for tests and the simulator. */
export class ManualClock implements Clock {
  #now: Instant
  #timers: { at: Instant; wake: () => void }[] = []

  constructor(start: Instant = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): Instant {
    return this.#now
  }

  observe(): Instant {
    return this.#now
  }

  timer(ms: number, wake: () => void): { cancel(): void } {
    const entry = { at: this.#now + ms, wake }
    this.#timers.push(entry)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== entry)
      },
    }
  }

  /** Moves time forward and wakes whoever waited for it, in order. */
  advance(ms: number): void {
    const until = this.#now + ms
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0]
      if (!due) break
      this.#timers = this.#timers.filter((timer) => timer !== due)
      this.#now = Math.max(this.#now, due.at)
      due.wake()
    }
    this.#now = until
  }
}
