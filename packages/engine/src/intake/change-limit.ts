import { type KeyLimit, keyLimitOf, putKeyLimits } from '../concurrency/key-limits.sql.ts'
import type { KeyRef } from '../concurrency/key-ref.ts'
import { refusal } from '../errors.ts'
import type { Definition } from '../job/definition.ts'
import { limitNameOf } from '../job/flow-keys.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { giveRunsKey } from './give-runs-key.sql.ts'

/** A key decides in which shard its jobs are, and a job does not move. */
export function mustKeepKey(before: Definition, after: Definition): void {
  const [old, wanted] = [limitNameOf(before), limitNameOf(after)]
  if (old === wanted) return
  const path = after.rateLimit?.key === undefined ? 'concurrency.key' : 'rateLimit.key'
  const message = old === null ? 'cannot be given later: create the job anew' : `cannot be changed: it stays "${old}"`
  throw refusal('invalid_job', path, message, `${path} cannot be changed: create the job anew`)
}

/** Writes what the new definition of a job says of its limit; answers it if its row said something else before. */
export async function changeLimit(
  tx: Queryable,
  job: { shard: number; tenantId: number; jobId: string },
  { before, after }: { before: Definition; after: Definition },
  now: Instant,
): Promise<KeyRef[]> {
  const old = keyLimitOf(before, job)
  const limit = keyLimitOf(after, job) ?? (old && { ...old, slots: NO_SLOTS, rate: null })
  if (limit === null) return []
  if (old === null) await giveRunsKey(tx, job, limit.key)
  const changed = await putKeyLimits(tx, [withoutTaken(limit, old)], now)
  return changed.length > 0 || old === null ? [limit] : []
}

const NO_SLOTS = { maxRunning: null, onLimit: 0 }

/** What the job said before and does not say any more no longer holds. */
const withoutTaken = (limit: KeyLimit, old: KeyLimit | null): KeyLimit => ({
  ...limit,
  slots: limit.slots ?? (old?.slots && NO_SLOTS),
  rate: limit.rate === undefined && old?.rate ? null : limit.rate,
})
