import { readStats, type StatsView } from './lookup/stats.sql.ts'
import { OfScope } from './scope.ts'
import type { TenantScope } from './tenant-scope.ts'

/** How a tenant's work stands. */
export class TenantStats extends OfScope<TenantScope> {
  get(): Promise<StatsView> {
    const { fresh, caller, engine } = this.scope
    return readStats(fresh, { tenant: { id: caller.tenantId, shards: engine.shards }, now: engine.clock.now() })
  }
}
