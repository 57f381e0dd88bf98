import type { BackfillView } from './backfill/backfill.ts'
import { noSuchBackfill } from './backfill/backfills.ts'
import { BackfillsOf } from './backfills.ts'

/** A tenant's backfills. */
export class TenantBackfills extends BackfillsOf<unknown> {
  override async get(backfillId: string): Promise<BackfillView> {
    const found = await super.get(backfillId)
    if (found === null) throw noSuchBackfill(backfillId)
    return found
  }

  override async cancel(backfillId: string): Promise<BackfillView> {
    await this.get(backfillId)
    return super.cancel(backfillId)
  }
}
