import type { Clock, Instant } from './clock.ts'

/** Work is put off this often, so that others get their turn. */
const TURN_MS = 15
/** Also where no time seems to pass: the clock of a test stands still. */
const TURN_STEPS = 100
/** What one call may take; it then answers with what it has. */
const BUDGET_MS = 1_000

/** For a long computation that a request asks for: it lets others have their turn, and knows when it has had enough. */
export class Breather {
  readonly #clock: Pick<Clock, 'now'>
  readonly #since: Instant
  #turn: Instant
  #steps = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#since = clock.now()
    this.#turn = this.#since
  }

  get isSpent(): boolean {
    return this.#clock.now() - this.#since >= BUDGET_MS
  }

  /** Between two steps of the work. */
  async breathe(): Promise<void> {
    this.#steps++
    if (this.#steps % TURN_STEPS !== 0 && this.#clock.now() - this.#turn < TURN_MS) return
    await new Promise((go) => setImmediate(go))
    this.#turn = this.#clock.now()
  }
}
