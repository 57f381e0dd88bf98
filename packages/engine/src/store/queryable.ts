import type { Statement } from './statement.ts'

/** Anything statements can be sent through: the pool, one of its connections in a transaction, or a caller's own client. */
export interface Queryable {
  query<Row extends readonly unknown[]>(statement: Statement, values: readonly unknown[]): Promise<Row[]>
  /** For statements that return nothing: how many rows the last part of it wrote. */
  execute(statement: Statement, values: readonly unknown[]): Promise<number>
}

export interface Transaction extends Queryable {
  /** Says to this transaction alone how long it may wait for a lock. */
  setLockTimeout(ms: number): Promise<void>
  /** What `work` throws undoes what it did, and nothing before it. Not to be nested. */
  undoable(work: () => Promise<void>): Promise<void>
}
