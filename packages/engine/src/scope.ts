import type { Engine } from './node/engine.ts'
import type { Queryable } from './store/database.ts'
import type { Page } from './store/page.ts'

/** For whom a part of the API acts, and who is written down to have done it. */
export interface Scope {
  readonly engine: Engine
  readonly actor: string
  /** Null: all tenants. */
  readonly tenantId: number | null
  /** Reads what was written a moment ago. */
  readonly fresh: Queryable
  /** A page of a list or of history. */
  page<Item>(read: (db: Queryable) => Promise<Page<Item>>): Promise<Page<Item>>
  /** Throws the same for another tenant's job as for one that does not exist. */
  mustOwnJob(jobId: string): Promise<void>
  mustOwnRun(runId: string): Promise<void>
}

/** The program that has the engine in itself, and may do everything. */
export class LibraryScope implements Scope {
  readonly engine: Engine
  readonly actor = 'library'
  readonly tenantId = null
  readonly fresh: Queryable

  constructor(engine: Engine) {
    this.engine = engine
    this.fresh = engine.db
  }

  page<Item>(read: (db: Queryable) => Promise<Page<Item>>): Promise<Page<Item>> {
    return read(this.fresh)
  }

  async mustOwnJob(): Promise<void> {}

  async mustOwnRun(): Promise<void> {}
}

/** A part of the API. */
export class OfScope<Whose extends Scope> {
  protected readonly scope: Whose

  constructor(scope: Whose) {
    this.scope = scope
  }
}

/** A part of the library. */
export class OfLibrary extends OfScope<LibraryScope> {
  constructor(engine: Engine) {
    super(new LibraryScope(engine))
  }
}
