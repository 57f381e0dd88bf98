import { BelfryError } from '../errors.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const TENANT = statement('find_tenant', 'select t.id from belfry.tenants t where t.name = $1')
const QUEUE = statement('find_queue', 'select q.id from belfry.queues q where q.tenant_id = $1 and q.name = $2')
const MAKE_QUEUE = statement(
  'make_queue',
  `insert into belfry.queues (id, tenant_id, name) select coalesce(max(q.id), 0) + 1, $1, $2 from belfry.queues q on conflict do nothing`,
)

/** Tries to make a queue while others make theirs; each failure means that somebody else succeeded. */
const MAX_TRIES = 100

/** The numbers that stand for tenants and queues in the hot tables. Queues exist by being named; none is ever renumbered. */
export class Registry {
  readonly #db: Queryable
  readonly #tenants = new Map<string, number>()
  readonly #queues = new Map<string, number>()

  constructor(db: Queryable) {
    this.#db = db
  }

  /** Without asking the database: for the commonest case, where both are known. */
  knownQueue(tenant: string, queue: string): { tenantId: number; queueId: number } | null {
    const tenantId = this.#tenants.get(tenant)
    const queueId = tenantId === undefined ? undefined : this.#queues.get(`${tenantId}.${queue}`)
    return tenantId === undefined || queueId === undefined ? null : { tenantId, queueId }
  }

  async tenantId(name: string): Promise<number> {
    const known = this.#tenants.get(name)
    if (known !== undefined) return known
    const [row] = await this.#db.query<[number]>(TENANT, [name])
    if (!row) {
      throw new BelfryError('invalid_job', `there is no tenant "${name}"`, {
        complaints: [{ path: 'tenant', message: `there is no tenant "${name}"` }],
      })
    }
    this.#tenants.set(name, row[0])
    return row[0]
  }

  async queueId(tenantId: number, name: string): Promise<number> {
    const key = `${tenantId}.${name}`
    const known = this.#queues.get(key)
    if (known !== undefined) return known
    for (let i = 0; i < MAX_TRIES; i++) {
      const [row] = await this.#db.query<[number]>(QUEUE, [tenantId, name])
      if (row) {
        this.#queues.set(key, row[0])
        return row[0]
      }
      await this.#db.query(MAKE_QUEUE, [tenantId, name])
    }
    throw new BelfryError('database_unavailable', `the queue "${name}" could not be made`)
  }
}
