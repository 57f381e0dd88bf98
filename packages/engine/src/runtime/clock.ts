/** Milliseconds since the epoch, whole. The only form in which the engine holds time. */
export type Instant = number

/**
 * The node's idea of the database's clock. No promise depends on it: leases are given, extended and judged by the database's own
 * clock, and whatever must be exact is compared there. It never steps back, except when a new sample shows that it was wrong.
 */
export interface Clock {
  now(): Instant
  /**
   * False: it has jumped, this machine slept, or the database has not been asked yet. Until the next sample agrees nothing is
   * leased, promoted or begun by it.
   */
  readonly isTrusted: boolean
  /** Tells what the database's clock said and how long the question took. */
  observe(databaseNow: Instant, roundTripMs: number): void
  /** Calls `wake` once, `ms` from now. */
  timer(ms: number, wake: () => void): { cancel(): void }
}

/** How far a sample may move the clock per second of real time: it slews instead of stepping. */
const SLEW_MS_PER_S = 50
/** What is further off is no drift: it is followed at once. */
const JUMP_MS = 1_000

export interface SystemClockEvents {
  /** The database's clock and ours have come apart by more than a second since the last sample. */
  onJump(offsetMs: number): void
}

/** The clocks of this machine: what people set, and what runs on whatever they set. */
export interface MachineClocks {
  wall(): number
  monotonic(): number
}

const MACHINE: MachineClocks = { wall: () => Date.now(), monotonic: () => performance.now() }

/** Monotonic time plus the offset to the database, learnt from the pulse. */
export class SystemClock implements Clock {
  readonly #events: SystemClockEvents
  readonly #machine: MachineClocks
  /** What the wall clock is ahead of the monotonic one. It moves by as long as the machine slept, or as its clock was set. */
  #ahead: number
  #offset: number
  #target: number
  #slewedAt: number
  #isCalibrated = false
  #isTrusted = false
  #bestRoundTrip = Number.POSITIVE_INFINITY
  #last = 0

  constructor(events: SystemClockEvents = { onJump: () => {} }, machine: MachineClocks = MACHINE) {
    this.#events = events
    this.#machine = machine
    this.#slewedAt = machine.monotonic()
    this.#ahead = machine.wall() - this.#slewedAt
    this.#offset = this.#ahead
    this.#target = this.#ahead
  }

  get isTrusted(): boolean {
    this.#noticeSleep(this.#machine.monotonic())
    return this.#isTrusted
  }

  now(): Instant {
    const monotonic = this.#machine.monotonic()
    this.#noticeSleep(monotonic)
    this.#slew(monotonic)
    this.#last = Math.max(this.#last, Math.floor(monotonic + this.#offset))
    return this.#last
  }

  observe(databaseNow: Instant, roundTripMs: number): void {
    const monotonic = this.#machine.monotonic()
    this.#noticeSleep(monotonic)
    const sample = databaseNow + roundTripMs / 2 - monotonic
    const moved = sample - this.#target
    if (!this.#isCalibrated) {
      this.#isCalibrated = true
      this.#isTrusted = true
      this.#follow(sample, roundTripMs)
    } else if (Math.abs(moved) > JUMP_MS + roundTripMs / 2) {
      this.#isTrusted = false
      this.#follow(sample, roundTripMs)
      this.#events.onJump(moved)
    } else {
      this.#isTrusted = true
      if (roundTripMs > this.#bestRoundTrip) {
        // The best sample ages, so that a drifting clock is followed even if no quicker answer ever comes.
        this.#bestRoundTrip *= 1.1
        return
      }
      this.#target = sample
      this.#bestRoundTrip = roundTripMs
    }
  }

  timer(ms: number, wake: () => void): { cancel(): void } {
    const handle = setTimeout(wake, ms)
    return { cancel: () => clearTimeout(handle) }
  }

  /** The monotonic clock stands still while a machine sleeps, and the other one does not. */
  #noticeSleep(monotonic: number): void {
    const ahead = this.#machine.wall() - monotonic
    const moved = Math.abs(ahead - this.#ahead)
    this.#ahead = ahead
    if (moved > JUMP_MS) this.#isTrusted = false
  }

  #follow(sample: number, roundTripMs: number): void {
    this.#offset = sample
    this.#target = sample
    this.#bestRoundTrip = roundTripMs
    this.#last = 0
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
  readonly isTrusted = true
  #now: Instant
  #timers: { at: Instant; wake: () => void }[] = []

  constructor(start: Instant = Date.UTC(2026, 0, 1)) {
    this.#now = start
  }

  now(): Instant {
    return this.#now
  }

  observe(): void {}

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
