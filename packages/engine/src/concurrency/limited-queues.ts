import type { Clock, Instant } from '../runtime/clock.ts'

/** Why nothing more is to be had: all slots are taken, the rate is used up, or somebody else claims from the queue. */
export interface Shortage {
  of: 'slots' | 'rate' | 'lock'
  /** At the latest then it is looked at again. */
  until: Instant
}

interface Gate {
  shortage: Shortage | null
  /** All slots were taken when it was last claimed from: nothing is leased ahead of a worker that is free. */
  isTight: boolean
  timer: { cancel(): void } | null
}

interface LimitedQueuesDeps {
  clock: Clock
  /** There may be something to have again. */
  onOpen(queueId: number): void
}

/**
 * The queues of this node that have a limit, as far as it knows: that is how they are claimed from, not what keeps the limit,
 * which every leasing statement looks up itself. After a claim that found nothing free the queue is left alone until
 * the rate allows one more, or a run of it has ended somewhere.
 */
export class LimitedQueues {
  readonly #deps: LimitedQueuesDeps
  readonly #gates = new Map<number, Gate>()

  constructor(deps: LimitedQueuesDeps) {
    this.#deps = deps
  }

  has(queueId: number): boolean {
    return this.#gates.has(queueId)
  }

  isClosed(queueId: number): boolean {
    const shortage = this.#gates.get(queueId)?.shortage ?? null
    return shortage !== null && shortage.until > this.#deps.clock.now()
  }

  isTight(queueId: number): boolean {
    return this.#gates.get(queueId)?.isTight ?? false
  }

  /** Of the queues that this node serves, those that have a limit now. True: one of them is new. */
  learn(served: readonly number[], limited: readonly number[]): boolean {
    const limits = new Set(limited)
    for (const queueId of served) if (!limits.has(queueId)) this.forget(queueId)
    const news = limited.filter((queueId) => !this.#gates.has(queueId))
    for (const queueId of news) this.#gates.set(queueId, { shortage: null, isTight: false, timer: null })
    return news.length > 0
  }

  forget(queueId: number): void {
    const gate = this.#gates.get(queueId)
    if (gate === undefined) return
    gate.timer?.cancel()
    this.#gates.delete(queueId)
    this.#deps.onOpen(queueId)
  }

  /** What a claim has found: nothing more for now, or no end of it. */
  found(queueId: number, shortage: Shortage | null): void {
    const gate = this.#gates.get(queueId)
    if (gate === undefined) return
    if (shortage?.of !== 'lock') gate.isTight = shortage?.of === 'slots'
    gate.timer?.cancel()
    gate.shortage = shortage
    if (shortage === null) return
    const waitMs = Math.max(1, shortage.until - this.#deps.clock.now())
    gate.timer = this.#deps.clock.timer(waitMs, () => this.#open(queueId, gate))
  }

  /** A run of the queue has ended, on whatever node. */
  freed(queueId: number): void {
    const gate = this.#gates.get(queueId)
    if (gate?.shortage?.of === 'slots') this.#open(queueId, gate)
  }

  #open(queueId: number, gate: Gate): void {
    gate.timer?.cancel()
    gate.shortage = null
    this.#deps.onOpen(queueId)
  }
}
