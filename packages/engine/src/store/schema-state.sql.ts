import type { Queryable } from './database.ts'
import { statement } from './statement.ts'

/** Policies do not hold for the owner of the tables; a user who is not would see no rows at all. */
const STATE = statement(
  'schema_state',
  `select (select max(m.number) from belfry.migrations m), row_security_active('belfry.jobs')`,
)

export async function schemaState(db: Queryable): Promise<{ newest: number; seesAllRows: boolean }> {
  const [row] = await db.query<[number, boolean]>(STATE, [])
  return { newest: row?.[0] ?? 0, seesAllRows: row?.[1] === false }
}
