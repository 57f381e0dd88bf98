import { getLogs, type LogView } from './lookup/get-logs.sql.ts'
import { getRun } from './lookup/get-run.sql.ts'
import { withLimit } from './lookup/limited-by.sql.ts'
import { type ListRuns, listRuns } from './lookup/list-runs.sql.ts'
import type { RunSummary, RunView } from './lookup/run-view.ts'
import { withBackfill } from './lookup/with-backfill.ts'
import { withOwnPayload } from './lookup/with-own-payload.ts'
import { withParents } from './lookup/with-parents.sql.ts'
import type { Page } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'

/** A tenant's runs. */
export class TenantRuns {
  readonly #scope: TenantScope

  constructor(scope: TenantScope) {
    this.#scope = scope
  }

  async get(runId: string): Promise<RunView> {
    const { fresh, caller } = this.#scope
    const run = await getRun(fresh, caller.tenantId, runId)
    if (run === null) throw noSuch('run', runId)
    return withParents(fresh, await withBackfill(fresh, await withOwnPayload(fresh, await withLimit(fresh, run))))
  }

  /** Live and finished ones in one list, a page at a time. */
  async list(filter: Omit<ListRuns, 'tenantId' | 'shards'> = {}): Promise<Page<RunSummary>> {
    const { caller, engine } = this.#scope
    const request = { ...filter, tenantId: caller.tenantId, shards: engine.shards }
    return this.#scope.page((db) => listRuns(db, request))
  }

  async logs(runId: string): Promise<LogView[]> {
    await this.#scope.mustOwnRun(runId)
    return getLogs(this.#scope.fresh, this.#scope.caller.tenantId, runId)
  }

  /** A waiting run is gone at once; a running one is asked to stop. */
  async cancel(runId: string): Promise<{ status: 'canceled' | 'canceling' }> {
    await this.#scope.mustOwnRun(runId)
    return this.#scope.engine.runChanges.cancel(runId, this.#scope.caller.actor)
  }

  /** Opens a failed or lost run again: same id, new attempts. */
  async retry(runId: string): Promise<{ runId: string }> {
    await this.#scope.mustOwnRun(runId)
    return this.#scope.engine.runChanges.retry(runId, this.#scope.caller.actor)
  }
}
