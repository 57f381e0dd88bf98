import { byKey, existingKeys, type KeyLimit, keyLimitOf, makeKeyLimits } from '../concurrency/key-limits.sql.ts'
import type { KeyRef } from '../concurrency/key-ref.ts'
import type { Definition } from '../job/definition.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Transaction } from '../store/database.ts'
import { isLockTimeout } from '../store/database-errors.ts'
import { definitionsOfKeys, newestJobsOfKeys } from './definitions-of-keys.sql.ts'
import { type LockedKey, lockKeys } from './key-slots.sql.ts'
import type { PickedRun } from './limited-picks.sql.ts'

/** Another transaction that makes the same row may take long to commit: its key is left for a later claim. */
const PATIENCE_MS = 5
/** Where one of many cannot be made, so many are made one by one; the rest is for later claims. */
const MAX_ALONE = 50

/** The keys that no other transaction holds, in the order of their rows. One that has no row gets it from what the jobs of its runs say. */
export async function holdKeys(
  tx: Transaction,
  byName: ReadonlyMap<string, readonly PickedRun[]>,
  now: Instant,
): Promise<Map<string, LockedKey>> {
  const refs = [...byName].map(([key, [first]]) => ({ shard: (first as PickedRun).shard, key })).sort(byKey)
  const locked = await lockKeys(tx, refs)
  if (locked.length === refs.length) return new Map(locked.map((key) => [key.key, key]))
  const held = new Set(locked.map(({ key }) => key))
  const others = refs.filter(({ key }) => !held.has(key))
  const existing = await existingKeys(tx, others)
  const missing = others.filter(({ key }) => !existing.has(key))
  if (missing.length > 0) locked.push(...(await makeKeys(tx, missing, now)))
  return new Map(locked.sort(byKey).map((key) => [key.key, key]))
}

/** Those of them that were made, and are held. */
async function makeKeys(tx: Transaction, missing: readonly KeyRef[], now: Instant): Promise<LockedKey[]> {
  const jobs = await newestJobsOfKeys(tx, missing)
  const found = await definitionsOfKeys(tx, jobs)
  const limits = missing.map((ref) =>
    limitFrom(
      found,
      ref,
      jobs.filter(({ key }) => key === ref.key),
    ),
  )
  await tx.setLockTimeout(PATIENCE_MS)
  let made = await makeUnlessBusy(tx, limits, now)
  if (made === null) {
    made = new Set()
    for (const limit of limits.slice(0, MAX_ALONE))
      for (const key of (await makeUnlessBusy(tx, [limit], now)) ?? []) made.add(key)
  }
  await tx.setLockTimeout(0)
  const isMade = made
  return lockKeys(
    tx,
    missing.filter(({ key }) => isMade.has(key)),
  )
}

/** Null: another transaction is just making one of them, and none was made. */
async function makeUnlessBusy(tx: Transaction, limits: KeyLimit[], now: Instant): Promise<Set<string> | null> {
  let made: Set<string> | null = null
  try {
    await tx.undoable(async () => {
      made = await makeKeyLimits(tx, limits, now)
    })
  } catch (error) {
    if (!isLockTimeout(error)) throw error
  }
  return made
}

/** What the newest job says that says anything. Where none does, because they took it back or are gone, nothing limits the runs. */
function limitFrom(
  found: ReadonlyMap<string, { tenantId: number; definition: string }>,
  { shard, key }: KeyRef,
  jobs: readonly { jobId: string }[],
): KeyLimit {
  const newestFirst = jobs.map(({ jobId }) => jobId).sort((a, b) => (a < b ? 1 : -1))
  for (const jobId of newestFirst) {
    const job = found.get(jobId)
    if (job === undefined) continue
    const { tenantId } = job
    const limit = keyLimitOf(JSON.parse(job.definition) as Definition, { shard, tenantId, jobId })
    if (limit?.key === key) return limit
  }
  const tenantId = found.get(newestFirst[0] ?? '')?.tenantId ?? 0
  return { shard, key, tenantId, name: '', slots: undefined, rate: undefined }
}
