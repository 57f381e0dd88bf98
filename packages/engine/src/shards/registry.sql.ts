import { BelfryError, refusal } from '../errors.ts'
import { HTTP_QUEUE } from '../job/definition.ts'
import { QUEUE_KIND, type QueueKind } from '../job/states.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Aside } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Whose queues are the system's own. */
const SYSTEM_TENANT = 0

const TENANT = statement('find_tenant', 'select t.id from belfry.tenants t where t.name = $1 and t.deletion is null')
/** The tenant's own, or else one that all tenants share. */
const QUEUE = statement(
  'find_queue',
  `select q.id, q.kind from belfry.queues q
   where (q.tenant_id = $1 or q.shared) and q.name = $2 and q.deleted_at is null order by q.shared limit 1`,
)
const REVIVE_QUEUE = statement(
  'revive_queue',
  'update belfry.queues q set deleted_at = null, created_at = clock_timestamp() where q.tenant_id = $1 and q.name = $2 and q.deleted_at is not null',
)
const MAKE_QUEUE = statement(
  'make_queue',
  `insert into belfry.queues (id, tenant_id, name, kind) select coalesce(max(q.id), 0) + 1, $1, $2, $3 from belfry.queues q on conflict do nothing`,
)
const SHARE_QUEUE = statement(
  'share_queue',
  `insert into belfry.queues (id, tenant_id, name, shared) select coalesce(max(q.id), 0) + 1, ${SYSTEM_TENANT}, $1, true from belfry.queues q
   on conflict do nothing`,
)

const DECIDE_KIND = statement(
  'decide_queue_kind',
  'update belfry.queues q set kind = $2 where q.id = $1 and q.kind is null',
)

/** A tenant may be deleted, and its name be given to another: known for so long. `default` is for ever. */
const TENANT_KNOWN_MS = 1_000
const DEFAULT_TENANT = 'default'
/** Tries to make a queue while others make theirs; each failure means that somebody else succeeded. */
const MAX_TRIES = 100

/** The numbers that stand for tenants and queues in the hot tables. Queues exist by being named; none is ever renumbered. */
export class Registry {
  readonly #db: Aside
  readonly #clock: Clock
  readonly #tenants = new Map<string, { id: number; until: Instant }>()
  readonly #queues = new Map<string, { id: number; kind: QueueKind }>()

  constructor(db: Aside, clock: Clock) {
    this.#db = db
    this.#clock = clock
  }

  /** Without asking the database: for the commonest case, where both are known. */
  knownQueue(tenant: string, queue: string, kind: QueueKind): { tenantId: number; queueId: number } | null {
    const tenantId = this.#knownTenant(tenant)
    const known = tenantId === undefined ? undefined : this.#queues.get(keyOf(tenantId, queue))
    return tenantId === undefined || known?.kind !== kind ? null : { tenantId, queueId: known.id }
  }

  /** Whoever knows the tenant for certain says so: a tenant may be deleted, and another be made by its name. */
  learn(tenant: string, tenantId: number): void {
    this.#tenants.set(tenant, { id: tenantId, until: this.#untilOf(tenant) })
  }

  /** These queues were deleted: the next use of one brings it back. */
  forget(queueIds: readonly number[]): void {
    if (queueIds.length === 0) return
    for (const [key, { id }] of this.#queues) if (queueIds.includes(id)) this.#queues.delete(key)
  }

  async tenantId(name: string): Promise<number> {
    const known = this.#knownTenant(name)
    if (known !== undefined) return known
    const until = this.#untilOf(name)
    // One asks again; whoever comes meanwhile goes on with what was known.
    const old = this.#tenants.get(name)
    if (old) old.until = until
    const [row] = await this.#db.query<[number]>(TENANT, [name])
    if (!row) {
      this.#tenants.delete(name)
      throw noTenant(name)
    }
    this.#tenants.set(name, { id: row[0], until })
    return row[0]
  }

  #untilOf(name: string): Instant {
    return name === DEFAULT_TENANT ? Number.POSITIVE_INFINITY : this.#clock.now() + TENANT_KNOWN_MS
  }

  #knownTenant(name: string): number | undefined {
    const known = this.#tenants.get(name)
    if (known === undefined) return undefined
    return known.until === Number.POSITIVE_INFINITY || this.#clock.now() < known.until ? known.id : undefined
  }

  /** The queue's number; its first use decides its kind, and a use of the other kind is refused. */
  async queueId(tenantId: number, name: string, kind: QueueKind = QUEUE_KIND.worker): Promise<number> {
    const key = keyOf(tenantId, name)
    const { id, kind: decided } = this.#queues.get(key) ?? (await this.#findOrMake(key, tenantId, name, kind))
    if (decided !== kind) throw wrongKind(name, kind)
    return id
  }

  /** Makes the queue, if there is none, without deciding its kind: its first use does. */
  async nameQueue(tenantId: number, name: string): Promise<void> {
    for (let i = 0; i < MAX_TRIES; i++) {
      const [row] = await this.#db.query<[number, QueueKind | null]>(QUEUE, [tenantId, name])
      if (row) return
      await this.#db.query(REVIVE_QUEUE, [tenantId, name])
      await this.#db.query(MAKE_QUEUE, [tenantId, name, null])
    }
    throw notMade(name)
  }

  /** Makes a queue that all tenants share, unless they do already. A tenant that has one of this name keeps its own. */
  async shareQueue(name: string): Promise<void> {
    for (let i = 0; i < MAX_TRIES; i++) {
      const [row] = await this.#db.query<[number, QueueKind | null]>(QUEUE, [SYSTEM_TENANT, name])
      if (row) return
      await this.#db.query(SHARE_QUEUE, [name])
    }
    throw notMade(name)
  }

  /** The queue of HTTP calls that name none, shared by all tenants. */
  httpQueueId(): Promise<number> {
    return this.queueId(SYSTEM_TENANT, HTTP_QUEUE, QUEUE_KIND.http)
  }

  async #findOrMake(
    key: string,
    tenantId: number,
    name: string,
    kind: QueueKind,
  ): Promise<{ id: number; kind: QueueKind }> {
    const owner = name === HTTP_QUEUE ? SYSTEM_TENANT : tenantId
    for (let i = 0; i < MAX_TRIES; i++) {
      const [row] = await this.#db.query<[number, QueueKind | null]>(QUEUE, [owner, name])
      if (!row) {
        // It comes with the schema; whoever wants it for workers gets none of that name.
        if (owner === SYSTEM_TENANT && kind !== QUEUE_KIND.http) throw wrongKind(name, kind)
        await this.#db.query(REVIVE_QUEUE, [owner, name])
        await this.#db.query(MAKE_QUEUE, [owner, name, kind])
      } else if (row[1] === null) {
        await this.#db.query(DECIDE_KIND, [row[0], kind])
      } else {
        const found = { id: row[0], kind: row[1] }
        this.#queues.set(key, found)
        return found
      }
    }
    throw notMade(name)
  }
}

export function noTenant(name: string): BelfryError {
  const message = `there is no tenant "${name}"`
  return refusal('invalid_job', 'tenant', message, message)
}

const notMade = (name: string): BelfryError =>
  new BelfryError('database_unavailable', `the queue "${name}" could not be made`)

/** One name means the system's queue, whoever says it. */
const keyOf = (tenantId: number, name: string): string =>
  name === HTTP_QUEUE ? `${SYSTEM_TENANT}.${name}` : `${tenantId}.${name}`

function wrongKind(name: string, wanted: QueueKind): BelfryError {
  const message =
    wanted === QUEUE_KIND.http
      ? `the queue "${name}" is for workers: an HTTP call needs a queue of its own kind, or none`
      : `the queue "${name}" is for HTTP calls: work for workers needs another queue`
  return refusal('queue_kind', 'queue', message, message)
}
