import type { WorkerRuntime } from './worker-runtime.ts'

/** What is leased ahead of free slots is what the handlers perform in this time. */
const PREFETCH_MS = 200
const MAX_PREFETCH = 4_000
const RATE_WINDOW_MS = 100
/** Nothing has ended for so long: nothing is leased ahead. */
const STALLED_MS = 1_000
/** For so long after something went back nothing is leased ahead of a slot. */
const CAREFUL_MS = 10_000

/** How many runs are leased ahead. Short work is, as much as was lately done in 200 ms; long work is not, its rate is low. */
export class Prefetch {
  readonly #runtime: WorkerRuntime
  readonly #isFixed: boolean
  #room: number
  #carefulUntil = Number.NEGATIVE_INFINITY
  #endedInWindow = 0
  #windowStart: number

  constructor(fixed: number | undefined, runtime: WorkerRuntime) {
    this.#runtime = runtime
    this.#isFixed = fixed !== undefined
    this.#room = fixed ?? 0
    this.#windowStart = runtime.monotonicMs()
  }

  get room(): number {
    const now = this.#runtime.monotonicMs()
    const isLate = !this.#isFixed && now - this.#windowStart > STALLED_MS
    return isLate || now < this.#carefulUntil ? 0 : this.#room
  }

  /** What was leased ahead had to go back. */
  wasTooMuch(): void {
    this.#carefulUntil = this.#runtime.monotonicMs() + CAREFUL_MS
  }

  /** The most it can ever be. */
  get limit(): number {
    return this.#isFixed ? this.#room : MAX_PREFETCH
  }

  ended(): void {
    if (this.#isFixed) return
    this.#endedInWindow++
    if (this.#endedInWindow % 16 !== 0 && this.#endedInWindow > 1) return
    const now = this.#runtime.monotonicMs()
    const elapsed = now - this.#windowStart
    if (elapsed < RATE_WINDOW_MS) return
    this.#room = Math.min(MAX_PREFETCH, Math.round((this.#endedInWindow / elapsed) * PREFETCH_MS))
    this.#endedInWindow = 0
    this.#windowStart = now
  }
}
