import { type BackfillView, backfillView } from './backfill/backfill.ts'
import { listBackfills, readBackfill } from './backfill/backfill-rows.sql.ts'
import type { BackfillPreview, CreatedBackfill } from './backfill/backfills.ts'
import type { BackfillInput } from './backfill/understand-backfill.ts'
import { checkedOptions } from './call-options.ts'
import { checkedJobId } from './intake/job-row.sql.ts'
import type { Engine } from './node/engine.ts'
import { LibraryScope, OfScope, type Scope } from './scope.ts'
import type { Page, PageRequest } from './store/page.ts'

/** Times of a schedule that have passed, made into runs. */
export class BackfillsOf<Input> extends OfScope<Scope> {
  /** What `create` would do with the same arguments; it does nothing. */
  async preview(jobId: string, input: Input): Promise<BackfillPreview> {
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.backfills.preview(jobId, input)
  }

  /** Makes runs of the times in [from, to) that have none, a few at a time. */
  async create(jobId: string, input: Input): Promise<CreatedBackfill> {
    await this.scope.mustOwnJob(jobId)
    return this.scope.engine.backfills.create(jobId, input, this.scope.actor)
  }

  /** Null: there is none. */
  async get(backfillId: string): Promise<BackfillView | null> {
    const found = await readBackfill(this.scope.fresh, this.scope.tenantId, backfillId)
    return found === null ? null : backfillView(found)
  }

  /** Those of a job, latest first, a page at a time. */
  async list(jobId: string, page: PageRequest = {}): Promise<Page<BackfillView>> {
    await this.scope.mustOwnJob(jobId)
    const [id, asked] = [checkedJobId(jobId), checkedOptions(page, ['limit', 'cursor'])]
    return this.scope.page((db) => listBackfills(db, this.scope.tenantId, id, asked))
  }

  /** No more runs of it; those alive go, or are asked to stop. */
  async cancel(backfillId: string): Promise<BackfillView> {
    return this.scope.engine.backfills.cancel(backfillId, this.scope.actor)
  }
}

export class Backfills extends BackfillsOf<BackfillInput> {
  constructor(engine: Engine) {
    super(new LibraryScope(engine))
  }
}
