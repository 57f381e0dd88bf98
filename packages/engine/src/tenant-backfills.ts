import { type BackfillView, backfillView } from './backfill/backfill.ts'
import { listBackfills, readBackfill } from './backfill/backfill-rows.sql.ts'
import { type BackfillPreview, type CreatedBackfill, noSuchBackfill } from './backfill/backfills.ts'
import type { Page, PageRequest } from './store/page.ts'
import type { TenantScope } from './tenant-scope.ts'

/** A tenant's backfills. */
export class TenantBackfills {
  readonly #scope: TenantScope

  constructor(scope: TenantScope) {
    this.#scope = scope
  }

  /** What `create` would do with the same arguments; it does nothing. */
  async preview(jobId: string, input: unknown): Promise<BackfillPreview> {
    await this.#scope.mustOwnJob(jobId)
    return this.#scope.engine.backfills.preview(jobId, input)
  }

  /** Makes runs of the times in [from, to) that have none, a few at a time. */
  async create(jobId: string, input: unknown): Promise<CreatedBackfill> {
    await this.#scope.mustOwnJob(jobId)
    return this.#scope.engine.backfills.create(jobId, input, this.#scope.caller.actor)
  }

  async get(backfillId: string): Promise<BackfillView> {
    const { fresh, caller } = this.#scope
    const found = await readBackfill(fresh, caller.tenantId, backfillId)
    if (found === null) throw noSuchBackfill(backfillId)
    return backfillView(found)
  }

  /** Those of a job, latest first, a page at a time. */
  async list(jobId: string, page: PageRequest = {}): Promise<Page<BackfillView>> {
    await this.#scope.mustOwnJob(jobId)
    return this.#scope.page((db) => listBackfills(db, this.#scope.caller.tenantId, jobId, page))
  }

  /** No more runs of it; those alive go, or are asked to stop. */
  async cancel(backfillId: string): Promise<BackfillView> {
    await this.get(backfillId)
    return this.#scope.engine.backfills.cancel(backfillId, this.#scope.caller.actor)
  }
}
