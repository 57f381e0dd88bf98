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

  addKey(key: string, queueId: number, error: unknown): void {
    this.#deps.logger.error('runs of a key cannot be claimed: it is passed over for a minute', { key, queueId, error })
    const [oldest] = this.#keys.keys()
    if (this.#keys.size >= MAX_ASIDE && oldest !== undefined) this.#keys.delete(oldest)
    this.#keys.set(key, this.#deps.clock.now() + ASIDE_MS)
  }
}

/** Whether a claim failed by what it claimed, and would again; not by whom it met, nor because the database was away. */
export function isFault(error: unknown): boolean {
  if (error instanceof BelfryError || !(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  return code === undefined || (typeof code === 'string' && OF_VALUES.test(code))
}
