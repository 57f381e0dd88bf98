import { type BackfillView, backfillView } from './backfill/backfill.ts'
import { listBackfills, readBackfill } from './backfill/backfill-rows.sql.ts'
import type { BackfillPreview, CreatedBackfill } from './backfill/backfills.ts'
import type { BackfillInput } from './backfill/understand-backfill.ts'
import { checkedOptions } from './call-options.ts'
import { checkedJobId } from './intake/job-row.sql.ts'
import type { Engine } from './node/engine.ts'
import type { Page, PageRequest } from './store/page.ts'

/** Times of a schedule that have passed, made into runs. */
export class Backfills {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** What `create` would do with the same arguments; it does nothing. */
  preview(jobId: string, input: BackfillInput): Promise<BackfillPreview> {
    return this.#engine.backfills.preview(jobId, input)
  }

  /** Makes runs of the times in [from, to) that have none, a few at a time. */
  create(jobId: string, input: BackfillInput): Promise<CreatedBackfill> {
    return this.#engine.backfills.create(jobId, input, 'library')
  }

  /** Null: there is none. */
  async get(backfillId: string): Promise<BackfillView | null> {
    const found = await readBackfill(this.#engine.db, null, backfillId)
    return found === null ? null : backfillView(found)
  }

  /** Those of a job, latest first, a page at a time. */
  async list(jobId: string, page: PageRequest = {}): Promise<Page<BackfillView>> {
    return listBackfills(this.#engine.db, null, checkedJobId(jobId), checkedOptions(page, ['limit', 'cursor']))
  }

  /** No more runs of it; those alive go, or are asked to stop. */
  cancel(backfillId: string): Promise<BackfillView> {
    return this.#engine.backfills.cancel(backfillId, 'library')
  }
}
