import type { Clock } from './runtime/clock.ts'
import type { Random } from './runtime/random.ts'
import type { Database } from './store/database.ts'
import { ApiKeys } from './tenants/api-keys.ts'
import { Tenants } from './tenants/tenants.ts'

/** What is above all tenants. */
export class Admin {
  readonly tenants: Tenants
  readonly apiKeys: ApiKeys

  constructor(deps: { db: Database; clock: Clock; random: Random }) {
    this.tenants = new Tenants(deps)
    this.apiKeys = new ApiKeys(deps)
  }
}
