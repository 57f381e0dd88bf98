import { checkedOptions } from './call-options.ts'
import type { OfTenant } from './jobs.ts'
import { getLogs, type LogView } from './lookup/get-logs.sql.ts'
import { getWholeRun } from './lookup/get-whole-run.sql.ts'
import { type ListRuns, listRuns } from './lookup/list-runs.sql.ts'
import type { RunSummary, RunView } from './lookup/run-view.ts'
import type { Engine } from './node/engine.ts'
import type { Canceled } from './promotion/stop-live.ts'
import { LibraryScope, OfScope, type Scope } from './scope.ts'
import type { Page } from './store/page.ts'

const LIST_OPTIONS = ['tenant', 'jobId', 'status', 'queue', 'failureClass', 'from', 'to', 'limit', 'cursor'] as const

export class RunsOf<Whose extends Scope> extends OfScope<Whose> {
  /** The run with its attempts, wherever it is. Null: there is none. */
  async get(runId: string): Promise<RunView | null> {
    const { scope } = this
    return getWholeRun(scope.fresh, { tenantId: scope.tenantId, runId, now: scope.engine.clock.now() })
  }

  /** What its handlers logged. */
  async logs(runId: string): Promise<LogView[]> {
    await this.scope.mustOwnRun(runId)
    return getLogs(this.scope.fresh, this.scope.tenantId, runId)
  }

  /** A waiting run is gone at once; a running one is asked to stop, and may still succeed. */
  async cancel(runId: string): Promise<Canceled> {
    await this.scope.mustOwnRun(runId)
    return this.scope.engine.runChanges.cancel(runId, this.scope.actor)
  }

  /** Opens a failed or lost run again: same id, new attempts. */
  async retry(runId: string): Promise<{ runId: string }> {
    await this.scope.mustOwnRun(runId)
    return this.scope.engine.runChanges.retry(runId, this.scope.actor)
  }
}

export class Runs extends RunsOf<Scope> {
  constructor(engine: Engine) {
    super(new LibraryScope(engine))
  }

  /** Live and finished ones in one list, a page at a time. */
  async list(options: OfTenant<Omit<ListRuns, 'shards'>> = {}): Promise<Page<RunSummary>> {
    const { tenant = 'default', ...request } = checkedOptions(options, LIST_OPTIONS)
    const { db, registry, shards } = this.scope.engine
    return listRuns(db, { ...request, shards, tenantId: await registry.tenantId(tenant) })
  }
}
