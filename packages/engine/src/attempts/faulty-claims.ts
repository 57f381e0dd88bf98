import { BelfryError } from '../errors.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'

/** For so long what failed is passed over. */
const ASIDE_MS = 60_000
/** More at a time are not remembered: what is forgotten fails again, and is found again. */
const MAX_ASIDE = 1_000
/** Of what PostgreSQL refuses: values that it cannot compute or store, and its own words for that. */
const OF_VALUES = /^(22|23|P0)/

/**
 * What cannot be claimed: something about a key, which nobody thought of, makes the claim fail each time. All keys of a queue are
 * claimed together, whoever's they are, so that one is passed over for a while, said in the log, and the others go on.
 */
export class FaultyClaims {
  readonly #deps: { clock: Clock; logger: Logger }
  readonly #keys = new Map<string, Instant>()
  readonly #queues = new Map<number, Instant>()

  constructor(deps: { clock: Clock; logger: Logger }) {
    this.#deps = deps
  }

  /** The keys that are passed over now. */
  get keys(): string[] {
    if (this.#keys.size === 0) return []
    const now = this.#deps.clock.now()
    for (const [key, until] of this.#keys) if (until <= now) this.#keys.delete(key)
    return [...this.#keys.keys()]
  }

  /** Whether all that has a key in this queue is to be decided on one by one. */
  isSlow(queueId: number): boolean {
    return (this.#queues.get(queueId) ?? Number.NEGATIVE_INFINITY) > this.#deps.clock.now()
  }

  addKey(key: string, queueId: number, error: unknown): void {
    this.#deps.logger.error('runs of a key cannot be claimed: it is passed over for a minute', { key, queueId, error })
    this.#put(this.#keys, key)
  }

  addQueue(queueId: number, error: unknown): void {
    this.#deps.logger.error('runs with keys cannot be claimed at once: for a minute it is slower', { queueId, error })
    this.#put(this.#queues, queueId)
  }

  #put<Name>(places: Map<Name, Instant>, name: Name): void {
    const [oldest] = places.keys()
    if (places.size >= MAX_ASIDE && oldest !== undefined) places.delete(oldest)
    places.set(name, this.#deps.clock.now() + ASIDE_MS)
  }
}

/** Whether a claim failed by what it claimed, and would again; not by whom it met, nor because the database was away. */
export function isFault(error: unknown): boolean {
  if (error instanceof BelfryError || !(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  return code === undefined || (typeof code === 'string' && OF_VALUES.test(code))
}
