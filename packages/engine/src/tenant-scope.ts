import { type Change, recordChange } from './audit/record-change.sql.ts'
import { BelfryError } from './errors.ts'
import { jobBelongsTo, runBelongsTo } from './lookup/belongs-to.sql.ts'
import type { Engine } from './node/engine.ts'
import type { Scope } from './scope.ts'
import type { Queryable } from './store/database.ts'
import type { Page } from './store/page.ts'
import type { Reader } from './store/reader.ts'

/** For whom a call is made, and by whom: an API key's prefix, or a program. */
export interface Caller {
  tenantId: number
  tenant: string
  actor: string
  /** With the installation's own key, which may act for all tenants. */
  isInstallation?: boolean
}

/** What every part of a tenant's view needs. */
export class TenantScope implements Scope {
  readonly caller: Caller
  readonly engine: Engine
  readonly actor: string
  readonly tenantId: number
  readonly fresh: Queryable
  readonly #lists: Reader

  constructor(caller: Caller, engine: Engine, readers: { fresh: Reader; lists: Reader }) {
    this.caller = caller
    this.engine = engine
    this.actor = caller.actor
    this.tenantId = caller.tenantId
    this.fresh = readers.fresh.of(caller.tenantId)
    this.#lists = readers.lists
  }

  /** From the replica if there is one, and then with its age. */
  async page<Item>(read: (db: Queryable) => Promise<Page<Item>>): Promise<Page<Item>> {
    // Asked before: what is read later is not older.
    const asOf = await this.#lists.asOf()
    const page = await read(this.#lists.of(this.tenantId))
    return asOf === null ? page : { ...page, asOf: new Date(asOf) }
  }

  async mustOwnJob(jobId: string): Promise<void> {
    if (!(await jobBelongsTo(this.fresh, this.tenantId, jobId))) throw noSuch('job', jobId)
  }

  async mustOwnRun(runId: string): Promise<void> {
    if (!(await runBelongsTo(this.fresh, this.tenantId, runId))) throw noSuch('run', runId)
  }

  /** Writes down what the caller changes, in the transaction of the change. */
  record(tx: Queryable, change: Omit<Change, 'tenantId' | 'actor' | 'at'>): Promise<void> {
    return recordChange(tx, { ...change, tenantId: this.tenantId, actor: this.actor, at: this.engine.clock.now() })
  }
}

const SHOWN = 100

/** Whatever was asked for stands in the answer, so it is cut to a length that no id has. */
export function noSuch(
  what: 'limit of' | 'job' | 'run' | 'dead letter' | 'queue' | 'worker' | 'calendar' | 'batch',
  id: unknown,
): BelfryError {
  const text = String(id)
  return new BelfryError('not_found', `there is no ${what} ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`)
}
