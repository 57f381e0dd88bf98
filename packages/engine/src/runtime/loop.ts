import type { Clock } from './clock.ts'
import type { Logger } from './logger.ts'

/** A step does one bounded piece of work and says how long to wait before the next; the loop does the waiting. */
export interface Step {
  runOnce(): Promise<{ waitMs: number }>
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1_000

/**
 * Runs a step again and again until stopped. `wake` ends a wait early, and a wake during a step is not lost. A step that
 * throws is tried again after a growing pause: no error ends a loop.
 */
export class Loop {
  readonly name: string
  readonly #step: Step
  readonly #clock: Clock
  readonly #logger: Logger
  #stopping = false
  #woken = false
  #endWait: (() => void) | null = null
  #running: Promise<void> | null = null

  constructor(name: string, step: Step, deps: { clock: Clock; logger: Logger }) {
    this.name = name
    this.#step = step
    this.#clock = deps.clock
    this.#logger = deps.logger
  }

  start(): void {
    this.#running ??= this.#run()
  }

  wake(): void {
    this.#woken = true
    this.#endWait?.()
  }

  async stop(): Promise<void> {
    this.#stopping = true
    this.#endWait?.()
    await this.#running
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS
    while (!this.#stopping) {
      this.#woken = false
      try {
        const { waitMs } = await this.#step.runOnce()
        pauseMs = FIRST_PAUSE_MS
        if (waitMs > 0) await this.#wait(waitMs)
      } catch (error) {
        this.#logger.warn(`${this.name} failed and is tried again`, { error })
        // A wake-up does not shorten this pause: while the database is away they come all the time.
        this.#woken = false
        await this.#wait(pauseMs)
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      }
    }
  }

  async #wait(ms: number): Promise<void> {
    if (this.#woken || this.#stopping) return
    await new Promise<void>((resolve) => {
      const timer = this.#clock.timer(ms, () => this.#endWait?.())
      this.#endWait = () => {
        timer.cancel()
        this.#endWait = null
        resolve()
      }
    })
  }
}
