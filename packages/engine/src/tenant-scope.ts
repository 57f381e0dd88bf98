import { BelfryError } from './errors.ts'
import { jobBelongsTo, runBelongsTo } from './lookup/belongs-to.sql.ts'
import type { Engine } from './node/engine.ts'
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
export class TenantScope {
  readonly caller: Caller
  readonly engine: Engine
  /** Reads what was written a moment ago. */
  readonly fresh: Queryable
  readonly #lists: Reader

  constructor(caller: Caller, engine: Engine, readers: { fresh: Reader; lists: Reader }) {
    this.caller = caller
    this.engine = engine
    this.fresh = readers.fresh.of(caller.tenantId)
    this.#lists = readers.lists
  }

  /** A page of a list or of history: from the replica if there is one, and then with its age. */
  async page<Item>(read: (db: Queryable) => Promise<Page<Item>>): Promise<Page<Item>> {
    // Asked before: what is read later is not older.
    const asOf = await this.#lists.asOf()
    const page = await read(this.#lists.of(this.caller.tenantId))
    return asOf === null ? page : { ...page, asOf: new Date(asOf) }
  }

  /** Throws the same for another tenant's job as for one that does not exist. */
  async mustOwnJob(jobId: string): Promise<void> {
    if (!(await jobBelongsTo(this.fresh, this.caller.tenantId, jobId))) throw noSuch('job', jobId)
  }

  async mustOwnRun(runId: string): Promise<void> {
    if (!(await runBelongsTo(this.fresh, this.caller.tenantId, runId))) throw noSuch('run', runId)
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
