/** Until the queue has been seen at work: more than any but a slow one needs. */
const UNKNOWN_US = 100_000
/** Rather too long than too short: then virtual time goes faster than the clock, and priority is worth less, but nothing starves. */
const MARGIN = 2
const SHORTEST_US = 100
const LONGEST_US = 60_000_000
/** Of a second and more one can tell how much a queue serves. */
const WINDOW_US = 1_000_000
/** How many flows there were at most is forgotten slowly: a hundredth at a time. */
const REMEMBERED = 0.99

/**
 * How far apart the runs of one flow stand: as long as the queue takes for one run of each of its flows. All flows must be
 * charged alike, and what has been charged cannot be changed; so it is measured while there is more work than the queue
 * can serve, and changed only when nothing waits.
 */
export class FairInterval {
  #us = UNKNOWN_US
  #own: number | null = null
  #heard: number | null = null
  #perSecond: number | null = null
  #mostWeight = 1
  #windowFrom: number | null = null
  #inWindow = 0

  get us(): number {
    return this.#us
  }

  /** What this node has found out itself; null: nothing. */
  get own(): number | null {
    return this.#own
  }

  get isKnown(): boolean {
    return this.#own !== null || this.#heard !== null
  }

  /** So many runs were leased, and perhaps not all that could have been. */
  served(nowUs: number, count: number, mayBeMore: boolean): void {
    const tookUs = this.#windowFrom === null ? 0 : nowUs - this.#windowFrom
    if (this.#windowFrom !== null) this.#inWindow += count
    if (tookUs >= WINDOW_US) this.#perSecond = (this.#inWindow * 1_000_000) / tookUs
    if (!mayBeMore) this.#windowFrom = null
    else if (this.#windowFrom === null || tookUs >= WINDOW_US) {
      this.#windowFrom = nowUs
      this.#inWindow = 0
    }
  }

  /** The flows that are ahead of the queue have this weight together. */
  saw(weight: number): void {
    this.#mostWeight = Math.max(this.#mostWeight, weight)
  }

  /** The longest that another node goes by; null: none says so. */
  hear(us: number | null): void {
    this.#heard = us
    if (this.#own === null) this.#us = us ?? UNKNOWN_US
  }

  /** Nothing waits: no flow is wronged by a change. */
  settle(): void {
    this.#windowFrom = null
    if (this.#perSecond === null) return
    const us = Math.round((MARGIN * this.#mostWeight * 1_000_000) / this.#perSecond)
    this.#own = Math.min(LONGEST_US, Math.max(SHORTEST_US, us))
    this.#us = Math.max(this.#own, this.#heard ?? 0)
    this.#mostWeight = Math.max(1, this.#mostWeight * REMEMBERED)
  }
}
