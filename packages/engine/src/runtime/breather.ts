import type { Clock, Instant } from './clock.ts'

/** Work is put off this often, so that others get their turn. */
const TURN_MS = 10
/** Also where no time seems to pass: the clock of a test stands still. */
const TURN_STEPS = 100
/** What one call may take of its own, whatever others did in their turns; it then answers with what it has. */
const BUDGET_MS = 1_000

/** For a long computation that a request asks for: it lets others have their turn, and knows when it has had enough. */
export class Breather {
  readonly #clock: Pick<Clock, 'now'>
  #turn: Instant
  #spentMs = 0
  #steps = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
    this.#turn = clock.now()
  }

  get isSpent(): boolean {
    return this.#spentMs + this.#clock.now() - this.#turn >= BUDGET_MS
  }

  /** Between two steps of the work. */
  async breathe(): Promise<void> {
    this.#steps++
    const tookMs = this.#clock.now() - this.#turn
    if (this.#steps % TURN_STEPS !== 0 && tookMs < TURN_MS) return
    this.#spentMs += tookMs
    await new Promise((go) => setImmediate(go))
    this.#turn = this.#clock.now()
  }
}
