import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { Complaints, isWord, readText, readWord } from '../input/read-fields.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { ShortMemory } from '../runtime/short-memory.ts'
import { bytesOf } from '../store/bytes.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Vault } from './vault.ts'

const MAX_VALUE = 65_536
/** So that a list of them is bounded, and nobody keeps a database here. */
const MAX_PER_TENANT = 1_000
const REMEMBERED_MS = 5_000
const MAX_REMEMBERED = 10_000

const PUT = statement(
  'put_secret',
  `insert into belfry.secrets as s (tenant_id, name, sealed, updated_at)
   select $1, $2, $3, to_timestamp($4::float8 / 1000)
   where (select count(*) from belfry.secrets o where o.tenant_id = $1 and o.name <> $2) < ${MAX_PER_TENANT}
   on conflict (tenant_id, name) do update set sealed = excluded.sealed, updated_at = excluded.updated_at
   returning (xmax = 0)`,
)
const LIST = statement(
  'list_secrets',
  `select s.name, s.updated_at from belfry.secrets s where s.tenant_id = $1 order by s.name limit ${MAX_PER_TENANT}`,
)
const DELETE = statement('delete_secret', 'delete from belfry.secrets s where s.tenant_id = $1 and s.name = $2')
const READ = statement('read_secret', 'select s.sealed from belfry.secrets s where s.tenant_id = $1 and s.name = $2')

const contextOf = (tenantId: number, name: string): string => `secret:${tenantId}:${name}`

export interface SecretsDeps {
  db: Database
  clock: Clock
  vault: Vault
}

/** What HTTP targets name as `{{secret:name}}`. Values go in and never come out again, except into a request. */
export class Secrets {
  readonly #deps: SecretsDeps
  readonly #remembered: ShortMemory<string | null>

  constructor(deps: SecretsDeps) {
    this.#deps = deps
    this.#remembered = new ShortMemory({ clock: deps.clock, keepMs: REMEMBERED_MS, maxEntries: MAX_REMEMBERED })
  }

  async put(tenantId: number, name: string, value: string, by: string): Promise<void> {
    const { db, clock, vault } = this.#deps
    const complaints = new Complaints()
    readWord(complaints, 'name', name)
    readText(complaints, 'value', value, MAX_VALUE)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    const sealed = vault.seal(Buffer.from(value), contextOf(tenantId, name))
    await db.callers.transactionOn([`secret ${contextOf(tenantId, name)}`], async (tx) => {
      const at = clock.now()
      const [row] = await tx.query<[isNew: boolean]>(PUT, [tenantId, name, sealed, at])
      if (!row) throw new BelfryError('quota_exceeded', `a tenant may have ${MAX_PER_TENANT} secrets`)
      const action = row[0] ? 'create' : 'update'
      await recordChange(tx, { tenantId, subject: 'secret', subjectId: name, action, actor: by, at })
    })
    this.#remembered.forget(contextOf(tenantId, name))
  }

  async list(tenantId: number): Promise<{ name: string; updatedAt: Date }[]> {
    const rows = await this.#deps.db.query<[string, Instant]>(LIST, [tenantId])
    return rows.map(([name, updatedAt]) => ({ name, updatedAt: new Date(updatedAt) }))
  }

  /** False: there was none. */
  async delete(tenantId: number, name: string, by: string): Promise<boolean> {
    if (!isWord(name)) return false
    const deleted = await this.#deps.db.callers.transactionOn([`secret ${contextOf(tenantId, name)}`], async (tx) => {
      if ((await tx.execute(DELETE, [tenantId, name])) === 0) return false
      const at = this.#deps.clock.now()
      await recordChange(tx, { tenantId, subject: 'secret', subjectId: name, action: 'delete', actor: by, at })
      return true
    })
    this.#remembered.forget(contextOf(tenantId, name))
    return deleted
  }

  /** The values of those that there are. They may be up to five seconds old. */
  async resolve(tenantId: number, names: readonly string[]): Promise<Map<string, string>> {
    const found = new Map<string, string>()
    for (const name of new Set(names)) {
      const value = await this.#read(tenantId, name)
      if (value !== null) found.set(name, value)
    }
    return found
  }

  async #read(tenantId: number, name: string): Promise<string | null> {
    if (!isWord(name)) return null
    const { db, vault } = this.#deps
    const context = contextOf(tenantId, name)
    return this.#remembered.get(context, async () => {
      const [row] = await db.query<[string]>(READ, [tenantId, name])
      return row ? vault.open(bytesOf(row[0]), context).toString() : null
    })
  }
}
