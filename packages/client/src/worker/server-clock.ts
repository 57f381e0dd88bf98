import type { WorkerRuntime } from './worker-runtime.ts'

const KEEP_MS = 60_000

/**
 * The worker's idea of the server's clock, in which deadlines and leases are told. Every answer that names the server's own
 * instant is a lower bound, since it took time to arrive; the highest of the last minute or two is the estimate. So it is
 * late by a network's delay at most and never early: no handler is timed out before its time because a clock is wrong.
 */
export class ServerClock {
  readonly #runtime: WorkerRuntime
  /** Server minus monotonic: the highest bound of this period, and of the one before. */
  #offset: number | null = null
  #previous: number | null = null
  #periodStart: number

  constructor(runtime: WorkerRuntime) {
    this.#runtime = runtime
    this.#periodStart = runtime.monotonicMs()
  }

  now(): number {
    const offset = highest(this.#offset, this.#previous)
    return offset === null ? this.#runtime.now() : this.#runtime.monotonicMs() + offset
  }

  /** The server's clock said this a moment ago. */
  observe(serverInstant: number): void {
    if (!Number.isFinite(serverInstant)) return
    const monotonic = this.#runtime.monotonicMs()
    if (monotonic - this.#periodStart >= KEEP_MS) {
      this.#previous = this.#offset
      this.#offset = null
      this.#periodStart = monotonic
    }
    this.#offset = highest(this.#offset, serverInstant - monotonic)
  }

  /** The machine was asleep: time passed that the monotonic clock did not count. */
  leap(ms: number): void {
    if (this.#offset !== null) this.#offset += ms
    if (this.#previous !== null) this.#previous += ms
  }
}

function highest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.max(a, b)
}
