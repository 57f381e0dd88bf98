/** Chance that repeats itself: the same seed gives the same choices. */
export class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** In [0, 1). */
  float(): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    const mixed = Math.imul(this.#state ^ (this.#state >>> 16), 0x45d9f3b) >>> 0
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4_294_967_296
  }

  /** Between both. */
  between(low: number, high: number): number {
    return low + this.float() * (high - low)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.float() * items.length)] as Item
  }

  happens(probability: number): boolean {
    return this.float() < probability
  }
}
