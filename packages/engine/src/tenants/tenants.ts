import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError, refusal } from '../errors.ts'
import { isWord } from '../input/read-fields.ts'
import { DEFAULT_TENANT } from '../job/definition.ts'
import type { Clock } from '../runtime/clock.ts'
import { pause } from '../runtime/pause.ts'
import { ShortMemory } from '../runtime/short-memory.ts'
import type { Database, Queryable } from '../store/database.ts'
import { INSTANT, limitOf, type Page, type PageRequest, pageOf, readCursor } from '../store/page.ts'
import {
  beginDeletion,
  countLimitedTenants,
  deleteTenant,
  endDeletion,
  insertingTransactions,
  isBusy,
  isDeletion,
  listTenants,
  lockTenant,
  putTenant,
  readTenant,
  readTenantNamed,
  type TenantView,
  writeTenant,
} from './tenant-rows.sql.ts'
import {
  NO_QUOTAS,
  type TenantInput,
  type TenantPatch,
  type TenantQuotas,
  understandTenant,
  understandTenantPatch,
} from './understand-tenant.ts'

const DEFAULT_TIER = 'standard'
const REMEMBERED_MS = 1_000
/** A quota need not be known everywhere at once, and is asked for with every request. */
const QUOTAS_REMEMBERED_MS = 5_000
const MAX_REMEMBERED = 10_000
/** Five seconds in all. */
const LOOK_EVERY_MS = 20
const MAX_LOOKS = 250
const MAX_ID = 2_147_483_647
/** In the whole installation, of tenants that have a limit of what waits: each node is told of all of them every second. */
const MAX_LIMITED = 10_000

export interface TenantsDeps {
  db: Database
  clock: Clock
  /** Resolved when this node knows what is committed now and comes with the pulse. */
  refresh(): Promise<void>
}

/** Who owns jobs: name, tier, weight and quotas. Every change is written down. */
export class Tenants {
  readonly #deps: TenantsDeps
  readonly #quotas: ShortMemory<TenantQuotas>
  readonly #named: ShortMemory<TenantView | null>

  constructor(deps: TenantsDeps) {
    this.#deps = deps
    this.#quotas = new ShortMemory({ clock: deps.clock, keepMs: QUOTAS_REMEMBERED_MS, maxEntries: MAX_REMEMBERED })
    this.#named = new ShortMemory({ clock: deps.clock, keepMs: REMEMBERED_MS, maxEntries: MAX_REMEMBERED })
  }

  async create(input: TenantInput, by: string): Promise<TenantView> {
    const { name, tier = DEFAULT_TIER, weight = 1, quotas } = understandTenant(input)
    const created = await this.#deps.db.callers.transactionOn([`tenant called ${name}`], async (tx) => {
      const now = this.#deps.clock.now()
      const given = { ...NO_QUOTAS, ...quotas }
      await mayLimit(tx, NO_QUOTAS, given)
      const made = await putTenant(tx, { name, tier, weight, quotas: given }, now)
      if (!made) throw new BelfryError('name_taken', `there is a tenant "${name}" already`)
      await recordChange(tx, { ...subjectOf(made.id), action: 'create', actor: by, after: made, at: now })
      return made
    })
    this.#named.forget(name)
    await this.#tellLimits(NO_QUOTAS, created.quotas)
    return created
  }

  async get(id: number): Promise<TenantView> {
    const found = isTenantId(id) ? await readTenant(this.#deps.db, id) : null
    if (!found) throw noSuchTenant(id)
    return found
  }

  /** Null: there is none of that name. At most a second old. */
  async byName(name: string): Promise<TenantView | null> {
    if (!isWord(name)) return null
    return this.#named.get(name, () => readTenantNamed(this.#deps.db, name))
  }

  /** Oldest first, a page at a time. */
  async list(page: PageRequest = {}): Promise<Page<TenantView>> {
    const limit = limitOf(page)
    const [after = '0'] = readCursor(page, [INSTANT]) ?? []
    const found = await listTenants(this.#deps.db, Math.min(Number(after), MAX_ID), limit + 1)
    return pageOf(found, limit, ({ id }) => [id])
  }

  /** Changes the fields that `patch` names; a quota that is null is none. */
  async update(id: number, patch: TenantPatch, by: string): Promise<TenantView> {
    const { quotas, ...fields } = understandTenantPatch(patch)
    if (!isTenantId(id)) throw noSuchTenant(id)
    const { before, after } = await this.#deps.db.callers.transactionOn([`tenant ${id}`], async (tx) => {
      const before = await lockTenant(tx, id)
      if (!before) throw noSuchTenant(id)
      const after = { ...before, ...fields, quotas: { ...before.quotas, ...quotas } }
      if (JSON.stringify(after) === JSON.stringify(before)) return { before, after }
      await mayLimit(tx, before.quotas, after.quotas)
      await writeTenant(tx, after)
      const at = this.#deps.clock.now()
      await recordChange(tx, { ...subjectOf(id), action: 'update', actor: by, before, after, at })
      return { before, after }
    })
    this.#quotas.forget(String(id))
    this.#named.forget(after.name)
    await this.#tellLimits(before.quotas, after.quotas)
    return after
  }

  /** What is created after the answer is created on a node that knows. */
  async #tellLimits(before: TenantQuotas, after: TenantQuotas): Promise<void> {
    const isSame = before.waitingRuns === after.waitingRuns && before.waitingSeconds === after.waitingSeconds
    if (!isSame) await this.#deps.refresh()
  }

  /** Only one that has nothing with a future and nothing in flight. Its keys and secrets go with it, its history stays. */
  async delete(id: number, by: string): Promise<void> {
    if (!isTenantId(id)) throw noSuchTenant(id)
    if (id === DEFAULT_TENANT) {
      const message = 'is the tenant "default", which cannot be deleted'
      throw refusal('invalid_argument', 'id', message, 'the tenant "default" cannot be deleted')
    }
    // First nobody may create any more, then those who had begun to must be over: only then "it has nothing" stays true.
    const deletion = await this.#deps.db.callers.transactionOn([`tenant ${id}`], async (tx) => {
      await this.#lockIdle(tx, id)
      return beginDeletion(tx, id)
    })
    try {
      await this.#waitForCreates()
      await this.#deleteIdle(id, deletion, by)
    } catch (error) {
      // If this fails too, nothing can be created for it until it is deleted again.
      await endDeletion(this.#deps.db, id, deletion).catch(() => 0)
      throw error
    }
  }

  async #deleteIdle(id: number, deletion: string, by: string): Promise<void> {
    const name = await this.#deps.db.callers.transactionOn([`tenant ${id}`], async (tx) => {
      const before = await this.#lockIdle(tx, id)
      if (!(await isDeletion(tx, id, deletion))) throw beingDeleted()
      await deleteTenant(tx, id)
      const at = this.#deps.clock.now()
      await recordChange(tx, { ...subjectOf(id), action: 'delete', actor: by, before, at })
      return before.name
    })
    this.#quotas.forget(String(id))
    this.#named.forget(name)
  }

  async #lockIdle(tx: Queryable, id: number): Promise<TenantView> {
    const tenant = await lockTenant(tx, id)
    if (!tenant) throw noSuchTenant(id)
    if (await isBusy(tx, id))
      throw new BelfryError('not_empty', `the tenant "${tenant.name}" still has jobs or runs: cancel them first`)
    return tenant
  }

  async #waitForCreates(): Promise<void> {
    const { db } = this.#deps
    const begun = await insertingTransactions(db)
    for (let looks = 0; begun.size > 0; looks++) {
      if (looks === MAX_LOOKS)
        throw new BelfryError('in_progress', 'a transaction that creates jobs is still open: try again when it is over')
      await pause(LOOK_EVERY_MS)
      const open = await insertingTransactions(db)
      for (const transaction of begun) if (!open.has(transaction)) begun.delete(transaction)
    }
  }

  /** At most five seconds old. One that is gone has none. */
  async quotasOf(tenantId: number): Promise<TenantQuotas> {
    return this.#quotas.get(String(tenantId), async () => {
      return (await readTenant(this.#deps.db, tenantId))?.quotas ?? NO_QUOTAS
    })
  }
}

const hasLimit = ({ waitingRuns, waitingSeconds }: TenantQuotas): boolean => (waitingRuns ?? waitingSeconds) !== null

async function mayLimit(tx: Queryable, before: TenantQuotas, after: TenantQuotas): Promise<void> {
  if (hasLimit(before) || !hasLimit(after) || (await countLimitedTenants(tx, MAX_LIMITED)) < MAX_LIMITED) return
  const message = `an installation may have ${MAX_LIMITED} tenants with waitingRuns or waitingSeconds`
  throw new BelfryError('quota_exceeded', message)
}

const subjectOf = (id: number) => ({ tenantId: id, subject: 'tenant', subjectId: String(id) }) as const

const isTenantId = (id: unknown): boolean => Number.isInteger(id) && (id as number) > 0 && (id as number) <= MAX_ID

const beingDeleted = (): BelfryError =>
  new BelfryError('in_progress', 'somebody else is just deleting the same tenant: try again')

const noSuchTenant = (id: unknown): BelfryError => new BelfryError('not_found', `there is no tenant ${String(id)}`)
