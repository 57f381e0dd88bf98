import { readStats, type StatsView } from './lookup/stats.sql.ts'
import type { TenantScope } from './tenant-scope.ts'

/** How a tenant's work stands. */
export class TenantStats {
  readonly #scope: TenantScope

  constructor(scope: TenantScope) {
    this.#scope = scope
  }

  get(): Promise<StatsView> {
    const { fresh, caller, engine } = this.#scope
    return readStats(fresh, { tenant: { id: caller.tenantId, shards: engine.shards }, now: engine.clock.now() })
  }
}
