/**
 * Gathers items into batches and keeps a few of them under way at once. A free lane takes at once what there is, so one
 * item alone does not wait; while all lanes are busy the next batch grows. Whoever pushes bounds how much it pushes.
 */
export class Lanes<Item> {
  readonly #work: (batch: Item[]) => Promise<void>
  readonly #lanes: number
  readonly #maxBatch: number
  #pending: Item[] = []
  #busy = 0
  #planned = false
  #idle: (() => void)[] = []

  constructor(options: { lanes: number; maxBatch: number; work: (batch: Item[]) => Promise<void> }) {
    this.#work = options.work
    this.#lanes = options.lanes
    this.#maxBatch = options.maxBatch
  }

  get pending(): number {
    return this.#pending.length
  }

  get isIdle(): boolean {
    return this.#pending.length === 0 && this.#busy === 0
  }

  push(item: Item): void {
    this.#pending.push(item)
    this.#plan()
  }

  /** Ends when everything pushed so far has been worked off. */
  async drained(): Promise<void> {
    if (this.isIdle) return
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  /** Not at once: what else is pushed in this turn of the event loop goes along. */
  #plan(): void {
    if (this.#planned || this.#busy >= this.#lanes) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      this.#start()
    })
  }

  #start(): void {
    while (this.#busy < this.#lanes && this.#pending.length > 0) {
      const batch = this.#pending.length <= this.#maxBatch ? this.#pending : this.#pending.splice(0, this.#maxBatch)
      if (batch === this.#pending) this.#pending = []
      this.#busy++
      // The work answers for its own errors: a lane only carries.
      void this.#work(batch).finally(() => {
        this.#busy--
        if (this.#pending.length > 0) this.#plan()
        else if (this.#busy === 0) for (const wake of this.#idle.splice(0)) wake()
      })
    }
  }
}
