import { jobIdLowerBound, shardOfKey } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { isForgotten, KEY_KIND } from './keys.sql.ts'

const HELD = statement(
  'held_idempotency_keys',
  `select k.key from unnest($2::smallint[], $3::text[]) as u (shard, key) cross join lateral (
     select k.key, k.job_id from belfry.keys k
     where k.shard = u.shard and k.tenant_id = $1 and k.kind = ${KEY_KIND.idempotency} and k.key = u.key
       and k.expires_at > to_timestamp($4::float8 / 1000) limit 1) k
   where not (${isForgotten('k.job_id', '$5')})`,
)

/** Those of a tenant's idempotency keys under which a job was made, and which have not expired. */
export async function heldKeys(
  db: Queryable,
  tenantId: number,
  keys: readonly string[],
  at: { shards: number; now: Instant; forgottenBefore: Instant },
): Promise<Set<string>> {
  const shards = keys.map((key) => shardOfKey(tenantId, key, at.shards))
  const rows = await db.query<[string]>(HELD, [tenantId, shards, keys, at.now, jobIdLowerBound(at.forgottenBefore)])
  return new Set(rows.map(([key]) => key))
}
