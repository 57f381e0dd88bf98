import type { WorkerRuntime } from './worker-runtime.ts'

/** What is leased ahead of free slots is what the handlers perform in this time. */
const PREFETCH_MS = 200
const MAX_PREFETCH = 4_000
const RATE_WINDOW_MS = 100

/** How many runs are leased ahead. Short work is, as much as was lately done in 200 ms; long work is not, its rate is low. */
export class Prefetch {
  readonly #runtime: WorkerRuntime
  readonly #isFixed: boolean
  #room: number
  #endedInWindow = 0
  #windowStart: number

  constructor(fixed: number | undefined, runtime: WorkerRuntime) {
    this.#runtime = runtime
    this.#isFixed = fixed !== undefined
    this.#room = fixed ?? 0
    this.#windowStart = runtime.monotonicMs()
  }

  get room(): number {
    return this.#room
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
