import { checkedOptions } from './call-options.ts'
import type { OfTenant } from './jobs.ts'
import { type DeadLetterView, type ListDeadLetters, listDeadLetters } from './lookup/list-dead-letters.sql.ts'
import { OfLibrary } from './scope.ts'
import type { Page } from './store/page.ts'

const LIST_OPTIONS = ['tenant', 'queue', 'failureClass', 'jobId', 'from', 'to', 'limit', 'cursor'] as const

export class DeadLetters extends OfLibrary {
  /** Latest first, a page at a time. */
  async list(options: OfTenant<ListDeadLetters> = {}): Promise<Page<DeadLetterView>> {
    const { tenant = 'default', ...request } = checkedOptions(options, LIST_OPTIONS)
    return listDeadLetters(this.scope.engine.db, {
      ...request,
      tenantId: await this.scope.engine.registry.tenantId(tenant),
    })
  }

  /** Opens the run of a dead letter again. */
  redrive(runId: string): Promise<{ runId: string }> {
    return this.scope.engine.runChanges.retry(runId, 'library')
  }
}
