import { limitKeyOf } from '../job/flow-keys.ts'
import { shardOfKey } from '../job/ids.ts'
import { LIMIT_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { KeyRef } from './key-ref.ts'

const PAUSE = statement(
  'pause_key',
  `insert into belfry.limits as l (used_at, paused_at, key, tenant_id, shard, kind, name, paused_by, pause_reason)
   values (to_timestamp($5::float8 / 1000), to_timestamp($5::float8 / 1000), $2, $3, $1, ${LIMIT_KIND.key}, $4, $6, $7)
   on conflict (shard, kind, key) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason`,
)
/** A row that only the pause has made says nothing about limits: whoever claims makes it anew from what the jobs say. */
const FORGET = statement(
  'forget_paused_key',
  `delete from belfry.limits l where l.shard = $1 and l.kind = ${LIMIT_KIND.key} and l.key = $2 and l.max_running is null and l.rate_count is null`,
)
const RESUME = statement(
  'resume_key',
  `update belfry.limits l set paused_at = null, paused_by = null, pause_reason = null where l.shard = $1 and l.kind = ${LIMIT_KIND.key} and l.key = $2`,
)

export interface NamedKey extends KeyRef {
  tenantId: number
  name: string
}

/** The limit that jobs of a tenant share by naming this key. */
export function namedKey(tenantId: number, name: string, shards: number): NamedKey {
  // Of a name, the hash does not depend on the job.
  const key = limitKeyOf({ queue: '', concurrency: { key: name, limit: 1 } }, tenantId, '') as string
  return { shard: shardOfKey(tenantId, name, shards), key, tenantId, name }
}

/** Whoever claims runs of the key from now on finds no free slot. */
export async function pauseKey(
  tx: Queryable,
  { shard, key, tenantId, name }: NamedKey,
  { at, by, reason }: { at: Instant; by: string; reason: string | null },
): Promise<void> {
  await tx.execute(PAUSE, [shard, key, tenantId, name, at, by, reason])
}

export async function resumeKey(tx: Queryable, { shard, key }: NamedKey): Promise<void> {
  await tx.execute(RESUME, [shard, key])
  await tx.execute(FORGET, [shard, key])
}
