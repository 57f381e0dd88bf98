import type { Instant } from '../../runtime/clock.ts'

/** Two counts over the last stretch of time, kept in buckets: what is older is forgotten bucket by bucket. */
export class SlidingCounts {
  readonly #bucketMs: number
  readonly #first: Int32Array
  readonly #second: Int32Array
  #bucket = 0
  first = 0
  second = 0

  constructor(spanMs: number, buckets: number) {
    this.#bucketMs = spanMs / buckets
    this.#first = new Int32Array(buckets)
    this.#second = new Int32Array(buckets)
  }

  addFirst(now: Instant): void {
    this.at(now)
    const i = this.#bucket % this.#first.length
    this.#first[i] = (this.#first[i] as number) + 1
    this.first++
  }

  addSecond(now: Instant): void {
    this.at(now)
    const i = this.#bucket % this.#second.length
    this.#second[i] = (this.#second[i] as number) + 1
    this.second++
  }

  /** Forgets what is too old by now. */
  at(now: Instant): this {
    const bucket = Math.floor(now / this.#bucketMs)
    const passed = Math.min(bucket - this.#bucket, this.#first.length)
    for (let i = 1; i <= passed; i++) {
      const old = (bucket - passed + i) % this.#first.length
      this.first -= this.#first[old] as number
      this.second -= this.#second[old] as number
      this.#first[old] = 0
      this.#second[old] = 0
    }
    if (passed > 0) this.#bucket = bucket
    return this
  }

  /** The second count of the youngest bucket alone. */
  get secondLately(): number {
    return this.#second[this.#bucket % this.#second.length] as number
  }

  clear(): void {
    this.#first.fill(0)
    this.#second.fill(0)
    this.first = 0
    this.second = 0
  }
}
