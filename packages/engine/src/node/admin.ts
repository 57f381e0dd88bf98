import { readStats, type StatsView } from '../lookup/stats.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Database } from '../store/database.ts'
import { ApiKeys } from '../tenants/api-keys.ts'
import { Tenants, type TenantsDeps } from '../tenants/tenants.ts'

/** What is above all tenants. */
export class Admin {
  readonly tenants: Tenants
  readonly apiKeys: ApiKeys

  readonly #deps: { db: Database; clock: Clock }

  constructor(deps: TenantsDeps & { random: Random }) {
    this.#deps = deps
    this.tenants = new Tenants(deps)
    this.apiKeys = new ApiKeys(deps)
  }

  /** How the work of all tenants stands. */
  stats(): Promise<StatsView> {
    const { db, clock } = this.#deps
    return readStats(db, { tenant: null, now: clock.now() })
  }
}
