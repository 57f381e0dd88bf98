import { BelfryError, refusal } from '../errors.ts'
import { newJobId, shardOfJob } from '../job/ids.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import { bytesOf } from '../store/bytes.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { payloadIdOf, payloadRefOf } from './payload-ref.ts'
import { KEPT_MS, keptSince, NOTED_EVERY_MS, REVIEW_BATCH, reviewUses } from './payload-uses.sql.ts'
import type { Vault } from './vault.ts'

const PURGE_BATCH = 500
/** For one call: the rest is for the next one. */
const MAX_BATCHES = 100
const CONTENT_TYPE = /^[\x21-\x7e][\x20-\x7e]{0,254}$/

const PUT = statement(
  'put_payload',
  `insert into belfry.payloads (created_at, used_at, id, tenant_id, size, shard, content_type, sealed)
   values (to_timestamp($1::float8 / 1000), to_timestamp($1::float8 / 1000), $2, $3, $4, $5, $6, $7)`,
)
const GET = statement(
  'get_payload',
  'select p.sealed, p.content_type, p.size, p.used_at from belfry.payloads p where p.shard = $1 and p.id = $2 and p.tenant_id = $3',
)
const NOTE = statement(
  'note_payload_use',
  `update belfry.payloads p set used_at = greatest(p.used_at, to_timestamp($4::float8 / 1000))
   where p.shard = $1 and p.id = $2 and p.tenant_id = $3`,
)
const DELETE = statement(
  'delete_payload',
  'delete from belfry.payloads p where p.shard = $1 and p.id = $2 and p.tenant_id = $3',
)
/** Whoever names it meanwhile changes it first: then it is no longer that old when its lock is had, and stays. */
const PURGE = statement(
  'purge_payloads',
  `with old as (
     select p.shard, p.id from belfry.payloads p
     where p.used_at < to_timestamp($1::float8 / 1000) and not exists (
       select from belfry.payload_uses e where e.shard = p.shard and e.payload_id = p.id)
     order by p.used_at limit ${PURGE_BATCH} for update skip locked
   )
   delete from belfry.payloads p using old o where p.shard = o.shard and p.id = o.id`,
)

export interface PayloadsDeps {
  db: Database
  clock: Clock
  random: Random
  vault: Vault
  shards: number
  /** How many bytes a payload of the tenant may have. */
  limitOf(tenantId: number): Promise<number>
}

export interface StoredPayload {
  payloadRef: string
  size: number
  expiresAt: Date
}

/**
 * Payloads that jobs name instead of carrying them. A reference is `pl_` and an id that is made like a job's, so it says its
 * shard. A payload is kept as long as a job that names it has a future (`payload-uses.sql.ts`), and for 30 days after its last use;
 * since uses are noted once a day, it may stay a day longer.
 */
export class Payloads {
  readonly #deps: PayloadsDeps

  constructor(deps: PayloadsDeps) {
    this.#deps = deps
  }

  async put(tenantId: number, bytes: Buffer, contentType: string): Promise<StoredPayload> {
    const { db, clock, random, vault, shards } = this.#deps
    if (!CONTENT_TYPE.test(contentType))
      throw refusal('invalid_argument', 'contentType', 'must be printable ASCII, at most 255 characters')
    const limit = await this.#deps.limitOf(tenantId)
    if (bytes.length > limit) {
      throw new BelfryError('payload_too_large', `the payload has ${bytes.length} bytes; ${limit} are allowed`)
    }
    const now = clock.now()
    const shard = Math.floor(random.float() * shards)
    const id = newJobId(shard, now, random)
    const sealed = vault.seal(bytes, contextOf(tenantId, id))
    await db.execute(PUT, [now, id, tenantId, bytes.length, shard, contentType, sealed])
    return { payloadRef: payloadRefOf(id), size: bytes.length, expiresAt: new Date(now + KEPT_MS) }
  }

  /** Null: there is none, or it is another tenant's. Reading it is a use. */
  async get(
    tenantId: number,
    payloadRef: string,
  ): Promise<{ bytes: Buffer; contentType: string; size: number; expiresAt: Date } | null> {
    const id = payloadIdOf(payloadRef)
    if (id === null) return null
    const { db, clock, vault } = this.#deps
    const [row] = await db.query<[string, string, number, Instant]>(GET, [shardOfJob(id), id, tenantId])
    if (!row) return null
    const [sealed, contentType, size, usedAt] = row
    const now = clock.now()
    const isNoted = now - usedAt < NOTED_EVERY_MS
    if (!isNoted) await db.execute(NOTE, [shardOfJob(id), id, tenantId, now])
    const expiresAt = new Date((isNoted ? usedAt : now) + KEPT_MS)
    return { bytes: vault.open(bytesOf(sealed), contextOf(tenantId, id)), contentType, size, expiresAt }
  }

  /** False: there was none. */
  async delete(tenantId: number, payloadRef: string): Promise<boolean> {
    const id = payloadIdOf(payloadRef)
    return id !== null && (await this.#deps.db.execute(DELETE, [shardOfJob(id), id, tenantId])) > 0
  }

  /** Removes what nobody needs and nobody has used for long; answers how many. */
  async purge(now: Instant): Promise<number> {
    const db = this.#deps.db.bulk
    await inBatches(REVIEW_BATCH, () => reviewUses(db, now))
    return inBatches(PURGE_BATCH, () => db.execute(PURGE, [keptSince(now)]))
  }
}

async function inBatches(full: number, batch: () => Promise<number>): Promise<number> {
  let done = 0
  for (let i = 0; i < MAX_BATCHES; i++) {
    const count = await batch()
    done += count
    if (count < full) break
  }
  return done
}

const contextOf = (tenantId: number, id: string): string => `payload:${tenantId}:${id}`
