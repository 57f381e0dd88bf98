import { BelfryError } from '../errors.ts'
import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** Policies do not hold for the owner of the tables; a user who is not would see no rows at all. */
const SEES_ALL_ROWS = statement('sees_all_rows', `select not row_security_active('belfry.jobs')`)

export async function seesAllRows(db: Queryable): Promise<boolean> {
  const [row] = await db.query<[boolean]>(SEES_ALL_ROWS, [])
  return row?.[0] === true
}

/** How far a schema is, by the numbers of migrations. */
export interface SchemaVersion {
  newest: number
  /** The newest one that is breaking: a program that does not know it cannot work with the schema. */
  needed: number
}

export const NEWEST_MIGRATION = '(select max(m.number) from belfry.migrations m)'
export const NEEDED_MIGRATION = '(select coalesce(max(m.number), 0) from belfry.migrations m where m.breaking)'

/** Names nothing that a migration may change, so that a program of any version can ask. */
const VERSION = statement('schema_version', `select ${NEWEST_MIGRATION}, ${NEEDED_MIGRATION}`)

export async function schemaVersion(db: Queryable): Promise<SchemaVersion> {
  const [row] = await db.query<[number, number]>(VERSION, [])
  return { newest: row?.[0] ?? 0, needed: row?.[1] ?? 0 }
}

/** Migrations by their numbers or labels. */
export function schemaTooNew(
  schema: string,
  { newest, known, needed }: { newest: number | string; known: number | string; needed: number | string },
): BelfryError {
  return new BelfryError(
    'schema_too_new',
    `schema "${schema}" is at migration ${newest}, this Belfry knows them up to ${known} and cannot work with ${needed}; ` +
      'start the newer Belfry that made it, or give this one a schema or database of its own',
  )
}
