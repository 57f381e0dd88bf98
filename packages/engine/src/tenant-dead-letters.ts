import { type DeadLetterView, type ListDeadLetters, listDeadLetters } from './lookup/list-dead-letters.sql.ts'
import type { Page } from './lookup/page.ts'
import type { TenantScope } from './tenant-scope.ts'

/** A tenant's dead letters. */
export class TenantDeadLetters {
  readonly #scope: TenantScope

  constructor(scope: TenantScope) {
    this.#scope = scope
  }

  /** Latest first, a page at a time. */
  async list(filter: Omit<ListDeadLetters, 'tenantId'> = {}): Promise<Page<DeadLetterView>> {
    const { lists, caller } = this.#scope
    return listDeadLetters(lists, { ...filter, tenantId: caller.tenantId })
  }
}
