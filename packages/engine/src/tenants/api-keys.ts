import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { Complaints, readInteger, readRecord, readText } from '../input/read-fields.ts'
import { isJobId, newJobId } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import { ShortMemory } from '../runtime/short-memory.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Database, Queryable } from '../store/database.ts'
import { AFTER_ALL, limitOf, type Page, type PageRequest, pageOf, readCursor, UUID } from '../store/page.ts'
import {
  type ApiKeyRow,
  expireApiKey,
  findApiKey,
  getApiKey,
  holdTenantOfApiKey,
  listApiKeys,
  lockApiKey,
  putApiKey,
  revokeApiKey,
} from './api-key-rows.sql.ts'
import { hashOfApiKey, looksLikeApiKey, newApiKey } from './api-key-text.ts'
import { readScopes, type Scope } from './scopes.ts'

const MAX_NAME = 128
const MAX_TENANT_ID = 2_147_483_647
const MAX_OVERLAP_MS = 30 * DAY_MS
const REMEMBERED_MS = 1_000
/** Known keys and unknown ones; a flood of wrong keys pushes out others, which are then asked for again. */
const MAX_REMEMBERED = 10_000

export interface ApiKeyInput {
  tenantId: number
  name: string
  scopes: Scope[]
  expiresAt?: Date | null
}

export interface ApiKeyView extends Omit<ApiKeyRow, 'createdAt' | 'expiresAt' | 'revokedAt'> {
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
}

/** The only time that the key itself is seen. */
export interface NewApiKey {
  id: string
  prefix: string
  key: string
}

/** Who a key speaks for. */
export interface Bearer {
  tenantId: number
  tenant: string
  scopes: Scope[]
  prefix: string
  keyId: string
}

export interface ApiKeysDeps {
  db: Database
  clock: Clock
  random: Random
}

/** API keys: only their hashes are kept, and every change is written down. */
export class ApiKeys {
  readonly #deps: ApiKeysDeps
  readonly #remembered: ShortMemory<ApiKeyRow | null>

  constructor(deps: ApiKeysDeps) {
    this.#deps = deps
    this.#remembered = new ShortMemory({ clock: deps.clock, keepMs: REMEMBERED_MS, maxEntries: MAX_REMEMBERED })
  }

  async create(input: ApiKeyInput, by: string): Promise<NewApiKey> {
    const now = this.#deps.clock.now()
    const { tenantId, name, scopes, expiresAt } = understand(input, now)
    return this.#deps.db.callers.transactionOn([`tenant ${tenantId}`], (tx) =>
      this.#make(tx, { tenantId, name, scopes, expiresAt, now, by }),
    )
  }

  /** Null: there is none. */
  async get(id: string): Promise<ApiKeyView | null> {
    const key = isJobId(id) ? await getApiKey(this.#deps.db, id) : null
    return key && viewOf(key)
  }

  /** Newest first, a page at a time; without a tenant those of all. */
  async list(tenantId: number | null, page: PageRequest = {}): Promise<Page<ApiKeyView>> {
    const limit = limitOf(page)
    const [before = AFTER_ALL] = readCursor(page, [UUID]) ?? []
    const found = await listApiKeys(this.#deps.db, tenantId, before, limit + 1)
    return pageOf(found.map(viewOf), limit, ({ id }) => [id])
  }

  /** From now on, on other nodes within a second. Again: nothing happens. */
  async revoke(id: string, by: string): Promise<void> {
    const { db, clock } = this.#deps
    const hash = await db.callers.transactionOn([`API key ${id}`], async (tx) => {
      const key = await lock(tx, id)
      if (key.revokedAt !== null) return key.hash
      const at = clock.now()
      await revokeApiKey(tx, id, at)
      await recordChange(tx, {
        ...subjectOf(key),
        action: 'revoke',
        actor: by,
        before: seenOf(key),
        after: seenOf({ ...key, revokedAt: at }),
        at,
      })
      return key.hash
    })
    this.#remembered.forget(hash)
  }

  /** Another key of the same name, tenant, scopes and lifetime; the old one is good for `overlapMs` more. */
  async rotate(id: string, { overlapMs }: { overlapMs: number }, by: string): Promise<NewApiKey> {
    const { db, clock } = this.#deps
    const complaints = new Complaints()
    readInteger(complaints, 'overlapMs', overlapMs, 0, MAX_OVERLAP_MS)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    const { hash, made } = await db.callers.transactionOn([`API key ${id}`], async (tx) => {
      if (isJobId(id)) await holdTenantOfApiKey(tx, id)
      const old = await lock(tx, id)
      const now = clock.now()
      if (!isGood(old, now)) {
        throw new BelfryError('already_finished', 'the key has been revoked or has expired: create another one')
      }
      const expiresAt = old.expiresAt === null ? null : now + (old.expiresAt - old.createdAt)
      const { tenantId, name, scopes } = old
      const made = await this.#make(tx, { tenantId, name, scopes, expiresAt, now, by })
      await expireApiKey(tx, id, now + overlapMs)
      const after = { ...old, expiresAt: Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs) }
      await recordChange(tx, {
        ...subjectOf(old),
        action: 'rotate',
        actor: by,
        before: seenOf(old),
        after: { ...seenOf(after), replacedBy: made.prefix },
        at: now,
      })
      return { hash: old.hash, made }
    })
    this.#remembered.forget(hash)
    return made
  }

  /** Null: unknown, revoked or expired. What it answers is at most a second old; an expiry is kept to the millisecond. */
  async authenticate(key: string): Promise<Bearer | null> {
    if (!looksLikeApiKey(key)) return null
    // Looked up by hash: how long that takes says nothing about a key that is nearly right.
    const hash = hashOfApiKey(key)
    const found = await this.#remembered.get(hash.toString('hex'), () => findApiKey(this.#deps.db, hash))
    if (found === null || !isGood(found, this.#deps.clock.now())) return null
    const { tenantId, tenant, scopes, prefix, id } = found
    return { tenantId, tenant, scopes, prefix, keyId: id }
  }

  async #make(tx: Queryable, { now, by, ...terms }: Terms & { now: Instant; by: string }): Promise<NewApiKey> {
    const { random } = this.#deps
    const { prefix, key } = newApiKey(random)
    const made = { ...terms, id: newJobId(0, now, random), prefix, createdAt: now, revokedAt: null }
    if (!(await putApiKey(tx, { ...made, hash: hashOfApiKey(key) }))) {
      throw new BelfryError('not_found', `there is no tenant ${terms.tenantId}`)
    }
    await recordChange(tx, { ...subjectOf(made), action: 'create', actor: by, after: seenOf(made), at: now })
    return { id: made.id, prefix, key }
  }
}

interface Terms extends Omit<ApiKeyInput, 'expiresAt'> {
  expiresAt: Instant | null
}

function understand(input: ApiKeyInput, now: Instant): Terms {
  const complaints = new Complaints()
  const record = readRecord(complaints, 'key', input, ['tenantId', 'name', 'scopes', 'expiresAt'])
  if (record === undefined) throw complaints.error('invalid_argument')
  const tenantId = readInteger(complaints, 'tenantId', record.tenantId, 1, MAX_TENANT_ID)
  const name = readText(complaints, 'name', record.name, MAX_NAME)
  const scopes = readScopes(complaints, record.scopes)
  const { expiresAt = null } = record
  const at = expiresAt instanceof Date ? expiresAt.getTime() : null
  if (expiresAt !== null && !(expiresAt instanceof Date)) complaints.add('expiresAt', 'must be a Date')
  else if (at !== null && !(at > now)) complaints.add('expiresAt', 'must be in the future')
  if (complaints.list.length > 0) throw complaints.error('invalid_argument')
  return { tenantId: tenantId as number, name: name as string, scopes: scopes as Scope[], expiresAt: at }
}

const isGood = ({ revokedAt, expiresAt }: ApiKeyRow, now: Instant): boolean =>
  revokedAt === null && (expiresAt === null || expiresAt > now)

async function lock(tx: Queryable, id: string): Promise<ApiKeyRow & { hash: string }> {
  const key = isJobId(id) ? await lockApiKey(tx, id) : null
  if (!key) throw new BelfryError('not_found', `there is no API key ${String(id)}`)
  return key
}

const subjectOf = ({ tenantId, id }: { tenantId: number; id: string }) =>
  ({ tenantId, subject: 'api_key', subjectId: id }) as const

/** What the record of changes may show. */
const seenOf = ({ name, prefix, scopes, expiresAt, revokedAt }: Omit<ApiKeyRow, 'tenant'>) => ({
  name,
  prefix,
  scopes,
  expiresAt: dateOf(expiresAt),
  revokedAt: dateOf(revokedAt),
})

const dateOf = (instant: Instant | null): Date | null => (instant === null ? null : new Date(instant))

const viewOf = ({ createdAt, expiresAt, revokedAt, ...key }: ApiKeyRow): ApiKeyView => ({
  ...key,
  createdAt: new Date(createdAt),
  expiresAt: dateOf(expiresAt),
  revokedAt: dateOf(revokedAt),
})
