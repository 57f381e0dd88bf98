import type { Clock, Instant } from './clock.ts'
import { setLast } from './maps.ts'

export interface ShortMemoryOptions {
  clock: Clock
  /** How long an answer may be used, counted from when it was asked for. */
  keepMs: number
  maxEntries: number
}

interface Entry<Value> {
  askedAt: Instant
  answer: Promise<Value>
  /** Once it is there. */
  value?: Value
}

/**
 * Remembers answers for a short while, so that a busy caller does not ask the database every time. Callers at the same time
 * share one question. What is forgotten while it is being asked for is not remembered.
 */
export class ShortMemory<Value> {
  readonly #options: ShortMemoryOptions
  readonly #entries = new Map<string, Entry<Value>>()

  constructor(options: ShortMemoryOptions) {
    this.#options = options
  }

  get(key: string, ask: () => Promise<Value>): Promise<Value> {
    const { clock, keepMs, maxEntries } = this.#options
    const askedAt = clock.now()
    const known = this.#entries.get(key)
    if (known !== undefined && askedAt - known.askedAt < keepMs) return known.answer
    const entry: Entry<Value> = { askedAt, answer: ask() }
    setLast(this.#entries, key, entry, maxEntries)
    entry.answer.then(
      (value) => {
        entry.value = value
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
      },
    )
    return entry.answer
  }

  /** Without waiting; undefined: it has to be asked for. */
  known(key: string): Value | undefined {
    const known = this.#entries.get(key)
    return known && this.#options.clock.now() - known.askedAt < this.#options.keepMs ? known.value : undefined
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }
}
