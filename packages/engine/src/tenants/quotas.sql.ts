import { BelfryError } from '../errors.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { setLast } from '../runtime/maps.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { MAX_PAYLOAD_BYTES, type TenantQuotas } from './understand-tenant.ts'

const RECOUNT_MS = 1_000
/** Counting may take this share of the time, so that a large quota is counted less often. */
const SHARE_OF_TIME = 20
const MAX_REMEMBERED = 10_000
/** `default` has no index of its timers and runs: of all of them, so many are looked at for it. */
const MAX_LOOKED_AT = 1_000_000

/** Jobs with a timer, and one-offs that have become runs; a recurring job's runs are not counted beside its timer. */
const COUNT = statement(
  'count_active_jobs',
  `select (select count(*) from (select from belfry.timers t where t.tenant_id = $1 and t.tenant_id <> 1 limit $2) t)::int
     + (select count(*) from (
       select from belfry.runs r where r.tenant_id = $1 and r.tenant_id <> 1 and r.one_off order by r.job_id, r.nominal_at limit $2) r)::int`,
)
const COUNT_OF_DEFAULT = statement(
  'count_active_jobs_of_default',
  `select (select count(*) from (
       select from (select t.tenant_id from belfry.timers t limit ${MAX_LOOKED_AT}) t where t.tenant_id = $1 limit $2) t)::int
     + (select count(*) from (
       select from (select r.tenant_id, r.one_off from belfry.runs r limit ${MAX_LOOKED_AT}) r where r.tenant_id = $1 and r.one_off limit $2) r)::int`,
)

interface Usage {
  counted: number
  /** What this node has let in since it was counted. */
  admitted: number
  countAgainAt: Instant
}

export interface QuotasDeps {
  db: Database
  clock: Clock
  tenants: { quotasOf(tenantId: number): Promise<TenantQuotas> }
}

/**
 * Keeps a tenant within its quotas without counting at every create: a count that is a second old, and what this node has let
 * in since. So a quota may be passed by what other nodes let in within that second; it is a bound, not an exact limit.
 */
export class Quotas {
  readonly #deps: QuotasDeps
  readonly #usage = new Map<number, Usage>()
  readonly #counting = new Map<number, Promise<void>>()

  constructor(deps: QuotasDeps) {
    this.#deps = deps
  }

  /** Throws `quota_exceeded` if the tenant may not have so many more jobs. */
  async admitJobs(tenantId: number, count: number): Promise<void> {
    const { activeJobs } = await this.#deps.tenants.quotasOf(tenantId)
    if (activeJobs === null) return
    await this.#countIfOld(tenantId, activeJobs)
    const usage = this.#usage.get(tenantId) ?? { counted: 0, admitted: 0, countAgainAt: 0 }
    if (usage.counted + usage.admitted + count > activeJobs) {
      throw new BelfryError('quota_exceeded', `the tenant may have ${activeJobs} active jobs (quota activeJobs)`)
    }
    usage.admitted += count
  }

  /** How many bytes one payload may have. */
  async payloadLimit(tenantId: number): Promise<number> {
    return (await this.#deps.tenants.quotasOf(tenantId)).payloadBytes ?? MAX_PAYLOAD_BYTES
  }

  async #countIfOld(tenantId: number, quota: number): Promise<void> {
    const known = this.#usage.get(tenantId)
    if (known && this.#deps.clock.now() < known.countAgainAt) return
    let counting = this.#counting.get(tenantId)
    if (counting === undefined) {
      counting = this.#count(tenantId, quota).finally(() => this.#counting.delete(tenantId))
      this.#counting.set(tenantId, counting)
    }
    await counting
  }

  async #count(tenantId: number, quota: number): Promise<void> {
    const { db, clock } = this.#deps
    const began = clock.now()
    const statement = tenantId === 1 ? COUNT_OF_DEFAULT : COUNT
    const [row] = await db.query<[number]>(statement, [tenantId, quota])
    const now = clock.now()
    const countAgainAt = began + Math.max(RECOUNT_MS, SHARE_OF_TIME * (now - began))
    setLast(this.#usage, tenantId, { counted: row?.[0] ?? 0, admitted: 0, countAgainAt }, MAX_REMEMBERED)
  }
}
