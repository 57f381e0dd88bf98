import type { Definition } from '../job/definition.ts'
import { shardOfKey } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { counts, holderInWords, KEEP_UNIQUE_MS, UniqueConflict } from './claim-unique.ts'
import { KEY_KIND, type Key, keyText, readKeys, takeKeys } from './keys.sql.ts'
import { definitionOf, readLiving, writeUniqueKeys } from './unique-keys.sql.ts'

/**
 * A run of the job is about to be opened again: the job takes its unique key again, if it has one, before anything else of it is
 * locked. Throws `unique_conflict` if another has it by now.
 */
export async function retakeUnique(
  tx: Queryable,
  jobId: string,
  { shards, now }: { shards: number; now: Instant },
): Promise<void> {
  const found = await definitionOf(tx, jobId)
  const unique = found && (JSON.parse(found.definitionJson) as Definition).unique
  if (!found || !unique) return
  const { tenantId } = found
  const key: Key = {
    ...{ shard: shardOfKey(tenantId, unique.key, shards), tenantId, kind: KEY_KIND.unique, key: unique.key, jobId },
    ...{ fingerprint: null, expiresAt: now + KEEP_UNIQUE_MS },
  }
  if ((await takeKeys(tx, [key], now)).size > 0) return
  const record = (await readKeys(tx, [key])).get(keyText(key))
  const others = record ? [record.jobId, ...record.others].filter((other) => other !== jobId) : []
  const living = await readLiving(tx, others)
  const holder = others.map((other) => living.get(other)).find((other) => other && counts(other, unique))
  if (holder) throw new UniqueConflict(null, holderInWords(holder, unique.key))
  await writeUniqueKeys(tx, [{ ...key, others: others.filter((other) => living.has(other)) }], now + KEEP_UNIQUE_MS)
}
