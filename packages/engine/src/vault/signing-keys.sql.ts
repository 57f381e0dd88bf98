import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { Complaints, readInteger } from '../input/read-fields.ts'
import { newJobId } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import { ShortMemory } from '../runtime/short-memory.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { bytesOf } from '../store/bytes.ts'
import type { Database, Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Vault } from './vault.ts'

const SECRET_BYTES = 32
const REMEMBERED_MS = 5_000
const MAX_REMEMBERED = 10_000
/** Every request carries a signature for each key that is valid. */
const MAX_VALID = 5
const MAX_OVERLAP_MS = 30 * DAY_MS

/** Whoever makes a key holds the tenant, so that two who find none make one. */
const LOCK_TENANT = statement('lock_tenant', 'select t.id from belfry.tenants t where t.id = $1 for update')
const LIST = statement(
  'list_signing_keys',
  `select k.id, k.created_at, k.expires_at, k.sealed from belfry.signing_keys k
   where k.tenant_id = $1 and (k.expires_at is null or k.expires_at > to_timestamp($2::float8 / 1000))
   order by k.created_at desc, k.id desc limit ${MAX_VALID}`,
)
const PUT = statement(
  'put_signing_key',
  `insert into belfry.signing_keys (created_at, id, tenant_id, sealed) values (to_timestamp($1::float8 / 1000), $2, $3, $4)`,
)
const EXPIRE = statement(
  'expire_signing_keys',
  `update belfry.signing_keys k set expires_at = least(k.expires_at, to_timestamp($2::float8 / 1000)) where k.tenant_id = $1`,
)
/** Those that have expired, and the oldest of too many. */
const FORGET = statement(
  'forget_signing_keys',
  `delete from belfry.signing_keys k where k.tenant_id = $1 and (k.expires_at <= to_timestamp($2::float8 / 1000) or k.id not in (
     select o.id from belfry.signing_keys o where o.tenant_id = $1 order by o.created_at desc, o.id desc limit ${MAX_VALID - 1}))`,
)

export interface SigningKeysDeps {
  db: Database
  clock: Clock
  random: Random
  vault: Vault
}

export interface SigningKeyView {
  id: string
  createdAt: Date
  expiresAt: Date | null
  /** As the receivers' libraries take it: `whsec_` and base64. */
  secret: string
}

interface Key {
  id: string
  createdAt: Instant
  expiresAt: Instant | null
  secret: Buffer
}

/** The keys that requests to a tenant's targets are signed with. Receivers hold them too, so they can be read back. */
export class SigningKeys {
  readonly #deps: SigningKeysDeps
  readonly #remembered: ShortMemory<Key[]>

  constructor(deps: SigningKeysDeps) {
    this.#deps = deps
    this.#remembered = new ShortMemory({ clock: deps.clock, keepMs: REMEMBERED_MS, maxEntries: MAX_REMEMBERED })
  }

  /** All that are valid now, the newest first; there is always one. */
  async current(tenantId: number): Promise<{ id: string; secret: Buffer }[]> {
    return this.#validOf(await this.#remembered.get(String(tenantId), () => this.#readOrMake(tenantId)))
  }

  /** The same without waiting; null: they have to be asked for. */
  known(tenantId: number): { id: string; secret: Buffer }[] | null {
    const keys = this.#remembered.known(String(tenantId))
    return keys === undefined ? null : this.#validOf(keys)
  }

  #validOf(keys: Key[]): Key[] {
    const now = this.#deps.clock.now()
    const isValid = ({ expiresAt }: Key): boolean => expiresAt === null || expiresAt > now
    return keys.every(isValid) ? keys : keys.filter(isValid)
  }

  async list(tenantId: number): Promise<SigningKeyView[]> {
    return (await this.#readOrMake(tenantId)).map(viewOf)
  }

  /** A new key; those before it are valid for `overlapMs` more. */
  async rotate(tenantId: number, overlapMs: number, by: string): Promise<SigningKeyView> {
    const complaints = new Complaints()
    readInteger(complaints, 'overlapMs', overlapMs, 0, MAX_OVERLAP_MS)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    const { db, clock } = this.#deps
    const made = await db.callers.transactionOn([`tenant ${tenantId}`], async (tx) => {
      await this.#lockTenant(tx, tenantId)
      const now = clock.now()
      const [before] = await this.#read(tx, tenantId)
      await tx.execute(EXPIRE, [tenantId, now + overlapMs])
      await tx.execute(FORGET, [tenantId, now])
      const key = await this.#make(tx, tenantId, now)
      await recordChange(tx, {
        tenantId,
        subject: 'signing_key',
        subjectId: key.id,
        action: 'rotate',
        actor: by,
        before: before ? { id: before.id } : null,
        after: { id: key.id, overlapMs },
        at: now,
      })
      return key
    })
    this.#remembered.forget(String(tenantId))
    return viewOf(made)
  }

  async #readOrMake(tenantId: number): Promise<Key[]> {
    const { db, clock } = this.#deps
    const keys = await this.#read(db, tenantId)
    if (keys.length > 0) return keys
    return db.callers.transactionOn([`tenant ${tenantId}`], async (tx) => {
      await this.#lockTenant(tx, tenantId)
      const meanwhile = await this.#read(tx, tenantId)
      return meanwhile.length > 0 ? meanwhile : [await this.#make(tx, tenantId, clock.now())]
    })
  }

  async #read(db: Queryable, tenantId: number): Promise<Key[]> {
    const { clock, vault } = this.#deps
    const rows = await db.query<[string, Instant, Instant | null, string]>(LIST, [tenantId, clock.now()])
    return rows.map(([id, createdAt, expiresAt, sealed]) => ({
      id,
      createdAt,
      expiresAt,
      secret: vault.open(bytesOf(sealed), contextOf(tenantId, id)),
    }))
  }

  async #make(tx: Queryable, tenantId: number, now: Instant): Promise<Key> {
    const { random, vault } = this.#deps
    const id = newJobId(0, now, random)
    const secret = random.bytes(SECRET_BYTES)
    await tx.execute(PUT, [now, id, tenantId, vault.seal(secret, contextOf(tenantId, id))])
    return { id, createdAt: now, expiresAt: null, secret }
  }

  async #lockTenant(tx: Queryable, tenantId: number): Promise<void> {
    const [row] = await tx.query(LOCK_TENANT, [tenantId])
    if (!row) throw new BelfryError('not_found', `there is no tenant ${tenantId}`)
  }
}

const contextOf = (tenantId: number, id: string): string => `signing key:${tenantId}:${id}`

const viewOf = ({ id, createdAt, expiresAt, secret }: Key): SigningKeyView => ({
  id,
  createdAt: new Date(createdAt),
  expiresAt: expiresAt === null ? null : new Date(expiresAt),
  secret: `whsec_${secret.toString('base64')}`,
})
