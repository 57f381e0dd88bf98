import { type ListRuns, listRuns } from './lookup/list-runs.sql.ts'
import type { RunSummary, RunView } from './lookup/run-view.ts'
import { RunsOf } from './runs.ts'
import type { Page } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** A tenant's runs. */
export class TenantRuns extends RunsOf<TenantScope> {
  override async get(runId: string): Promise<RunView> {
    const run = await super.get(runId)
    if (run === null) throw noSuch('run', runId)
    return run
  }

  /** Live and finished ones in one list, a page at a time. */
  async list(filter: Omit<ListRuns, 'tenantId' | 'shards'> = {}): Promise<Page<RunSummary>> {
    const { tenantId, engine } = this.scope
    return this.scope.page((db) => listRuns(db, { ...filter, tenantId, shards: engine.shards }))
  }
}
