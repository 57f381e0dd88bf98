import type { Clock, Instant } from '../../runtime/clock.ts'

export type SigningSecrets = readonly { secret: Buffer }[]

export interface SigningKeySource {
  current(tenantId: number): Promise<SigningSecrets>
}

/** Keys are known for seconds anyway before a change of them is seen. */
const KEEP_MS = 100
const MAX_TENANTS = 10_000

/** The keys of tenants that are being called for right now, so that a call need not wait for what is known. */
export class RecentKeys {
  readonly #clock: Clock
  readonly #source: SigningKeySource
  readonly #known = new Map<number, { keys: SigningSecrets; until: Instant }>()

  constructor(clock: Clock, source: SigningKeySource) {
    this.#clock = clock
    this.#source = source
  }

  recent(tenantId: number, now: Instant): SigningSecrets | null {
    const known = this.#known.get(tenantId)
    return known !== undefined && now < known.until ? known.keys : null
  }

  async of(tenantId: number): Promise<SigningSecrets> {
    const until = this.#clock.now() + KEEP_MS
    const keys = await this.#source.current(tenantId)
    if (this.#known.size >= MAX_TENANTS) this.#known.clear()
    this.#known.set(tenantId, { keys, until })
    return keys
  }
}
