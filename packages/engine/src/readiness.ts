import type { Readers } from './readers.ts'
import type { Database } from './store/database.ts'
import { PING } from './store/ping.sql.ts'
import { schemaTooNew, schemaVersion, seesAllRows } from './store/schema-state.sql.ts'

export interface Check {
  name: string
  ok: boolean
  detail?: string
}

export interface Readiness {
  /** False: this node cannot do its work. A check that failed may be one that it can work without. */
  ready: boolean
  checks: Check[]
}

export interface ReadinessDeps {
  db: Database
  readers: Readers
  /** The newest migration that this program knows. */
  known: number
  /** Why tenants' reads have one wall only; null: they have both. */
  missingWall: string | null
  /** What is wrong with the encryption key; null: nothing. */
  keyWeakness: string | null
  /** What is wrong with this node's zone data; null: nothing. */
  zoneDataWeakness: string | null
}

export async function readiness(deps: ReadinessDeps): Promise<Readiness> {
  const { db, readers, missingWall, keyWeakness, zoneDataWeakness } = deps
  const required = [
    await check('database', () => db.query(PING, [])),
    await check('schema', () => checkSchema(db, deps.known)),
  ]
  const wished = [
    outcome('reader role', missingWall),
    outcome('encryption key', keyWeakness),
    outcome('zone data', zoneDataWeakness),
    ...(readers.lists === readers.fresh ? [] : [await check('read database', () => readers.lists.asOf())]),
  ]
  return { ready: required.every(({ ok }) => ok), checks: [...required, ...wished] }
}

async function checkSchema(db: Database, known: number): Promise<void> {
  const { newest, needed } = await schemaVersion(db)
  if (newest < known) throw new Error(`it is at migration ${newest}, this program needs ${known}`)
  if (needed > known) throw schemaTooNew(db.schema, { newest, known, needed })
  if (!(await seesAllRows(db))) throw new Error('this database user does not own the tables: it would see no rows')
}

async function check(name: string, work: () => Promise<unknown>): Promise<Check> {
  try {
    await work()
    return { name, ok: true }
  } catch (error) {
    return { name, ok: false, detail: error instanceof Error ? error.message : String(error) }
  }
}

const outcome = (name: string, weakness: string | null): Check =>
  weakness === null ? { name, ok: true } : { name, ok: false, detail: weakness }
