import type { Instant } from '../runtime/clock.ts'
import type { KeyRef } from './key-ref.ts'

type Entry = KeyRef & { at: Instant }

/** When keys are to be looked at again, each once; a heap, so that whoever asks for those that are due pays for them alone. */
export class WakeTimes {
  readonly #max: number
  readonly #heap: Entry[] = []
  /** The time that counts: others of the key in the heap are passed over. */
  readonly #times = new Map<string, Instant>()

  /** `max`: of more keys nothing is remembered. */
  constructor(max: number) {
    this.#max = max
  }

  put({ shard, key, at }: Entry): void {
    const known = this.#times.get(key)
    if (known === at || this.#heap.length >= (known === undefined ? this.#max : 2 * this.#max)) return
    this.#times.set(key, at)
    this.#heap.push({ shard, key, at })
    this.#rise(this.#heap.length - 1)
  }

  /** Takes those whose time has come. */
  takeDue(now: Instant): KeyRef[] {
    const due: KeyRef[] = []
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.#dropFirst()
      if (this.#times.get(first.key) !== first.at) continue
      this.#times.delete(first.key)
      due.push(first)
    }
    return due
  }

  /** Never later than the first; null: none is remembered. */
  get firstAt(): Instant | null {
    return this.#heap[0]?.at ?? null
  }

  #dropFirst(): void {
    const last = this.#heap.pop() as Entry
    if (this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink()
  }

  #rise(from: number): void {
    const heap = this.#heap
    for (let i = from; i > 0; ) {
      const above = (i - 1) >> 1
      if ((heap[above] as Entry).at <= (heap[i] as Entry).at) return
      this.#swap(i, above)
      i = above
    }
  }

  #sink(): void {
    const heap = this.#heap
    for (let i = 0; ; ) {
      const left = 2 * i + 1
      if (left >= heap.length) return
      const right = left + 1
      const least = right < heap.length && (heap[right] as Entry).at < (heap[left] as Entry).at ? right : left
      if ((heap[i] as Entry).at <= (heap[least] as Entry).at) return
      this.#swap(i, least)
      i = least
    }
  }

  #swap(a: number, b: number): void {
    const heap = this.#heap
    const one = heap[a] as Entry
    heap[a] = heap[b] as Entry
    heap[b] = one
  }
}
