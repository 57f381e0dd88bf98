import type { Random } from '../../runtime/random.ts'

const TRACE = 32
const SPAN = 16
/** Chance is cheaper by the kilobyte. */
const BYTES = 4_800

/** W3C trace contexts for calls that nobody gave one. */
export class TraceParents {
  readonly #random: Random
  #hex = ''
  #at = 0

  constructor(random: Random) {
    this.#random = random
  }

  next(): string {
    if (this.#at + TRACE + SPAN > this.#hex.length) {
      this.#hex = this.#random.bytes(BYTES).toString('hex')
      this.#at = 0
    }
    const trace = this.#hex.slice(this.#at, this.#at + TRACE)
    const span = this.#hex.slice(this.#at + TRACE, this.#at + TRACE + SPAN)
    this.#at += TRACE + SPAN
    return `00-${trace}-${span}-01`
  }
}
