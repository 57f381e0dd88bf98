import { checkedOptions } from './call-options.ts'
import type { OfTenant } from './jobs.ts'
import { getLogs, type LogView } from './lookup/get-logs.sql.ts'
import { getRun } from './lookup/get-run.sql.ts'
import { withLimit } from './lookup/limited-by.sql.ts'
import { type ListRuns, listRuns } from './lookup/list-runs.sql.ts'
import type { RunSummary, RunView } from './lookup/run-view.ts'
import { withBackfill } from './lookup/with-backfill.ts'
import { withOwnPayload } from './lookup/with-own-payload.ts'
import { withParents } from './lookup/with-parents.sql.ts'
import type { Engine } from './node/engine.ts'
import type { Page } from './store/page.ts'

const LIST_OPTIONS = ['tenant', 'jobId', 'status', 'queue', 'failureClass', 'from', 'to', 'limit', 'cursor'] as const

export class Runs {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** The run with its attempts, wherever it is. Null: there is none. */
  async get(runId: string): Promise<RunView | null> {
    const { db } = this.#engine
    const run = await withLimit(db, await getRun(db, null, runId))
    return withParents(db, await withBackfill(db, await withOwnPayload(db, run)))
  }

  /** Live and finished ones in one list, a page at a time. */
  async list(options: OfTenant<Omit<ListRuns, 'shards'>> = {}): Promise<Page<RunSummary>> {
    const { tenant = 'default', ...request } = checkedOptions(options, LIST_OPTIONS)
    const { db, registry, shards } = this.#engine
    return listRuns(db, { ...request, shards, tenantId: await registry.tenantId(tenant) })
  }

  /** What its handlers logged. */
  async logs(runId: string): Promise<LogView[]> {
    return getLogs(this.#engine.db, null, runId)
  }

  /** A waiting run is gone at once; a running one is asked to stop. */
  cancel(runId: string): Promise<{ status: 'canceled' | 'canceling' }> {
    return this.#engine.runChanges.cancel(runId, 'library')
  }

  /** Opens a failed or lost run again: same id, new attempts. */
  retry(runId: string): Promise<{ runId: string }> {
    return this.#engine.runChanges.retry(runId, 'library')
  }
}
