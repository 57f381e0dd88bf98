import { BelfryError } from '../errors.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { isLockTimeout, type Queryable, type Transaction } from '../store/database.ts'
import { announcePayloads, missingOf, withdrawPayloads } from './announce-payloads.ts'
import { KEY_KIND, type Key, keyText, readKeys, takeKeys, takeOverName } from './keys.sql.ts'
import type { Sending } from './put-jobs.sql.ts'
import { type Created, createdOf, type Prepared, putAll } from './put-prepared.ts'

const LOCK_TIMEOUT_MS = 1_000

/**
 * Takes the keys first, in order, then inserts what is new; the payloads that jobs name are announced before both. A key that
 * another transaction is just taking is waited for a second at most, then the caller hears `in_progress`. The same key twice
 * in one batch is one job.
 */
export async function putKeyed(
  tx: Queryable | Transaction,
  prepared: readonly Prepared[],
  now: Instant,
  sending: Sending = 'again',
): Promise<Created[]> {
  const missing = await announcePayloads(tx, prepared, now)
  const keyed = prepared.filter(({ keys }) => keys.length > 0)
  const existing = keyed.length === 0 ? new Map<Prepared, string>() : await claimKeys(tx, keyed, now)
  const fresh = prepared.filter((item) => !existing.has(item))
  const lost = missing.size === 0 ? undefined : fresh.find((item) => missing.has(item))
  if (lost) throw missingOf(lost)
  if (existing.size > 0) await withdrawPayloads(tx, [...existing.keys()])
  await putAll(tx, fresh, now, sending)
  return prepared.map((item) => {
    const jobId = existing.get(item)
    return jobId === undefined ? createdOf(item) : { jobId, deduplicated: true, nextRunAt: null }
  })
}

/** Answers the jobs that exist already, by idempotency key. Throws if a key or name belongs to something else. */
async function claimKeys(
  tx: Queryable | Transaction,
  keyed: readonly Prepared[],
  now: Instant,
): Promise<Map<Prepared, string>> {
  const existing = new Map<Prepared, string>()
  const owners = new Map<string, { item: Prepared; key: Key }>()
  for (const item of keyed) {
    for (const key of item.keys) {
      const first = owners.get(keyText(key))
      if (!first) owners.set(keyText(key), { item, key })
      else if (key.kind === KEY_KIND.name && !existing.has(item)) throw nameTaken(key.key)
      else if (first.key.fingerprint !== key.fingerprint) throw mismatch(key.key)
      else existing.set(item, first.item.job.jobId)
    }
  }
  const keys = [...owners.values()].map(({ key }) => key)
  const taken = await takeWithin(tx, keys, now)
  const missing = keys.filter((key) => !taken.has(keyText(key)))
  if (missing.length === 0) return existing
  const held = await readKeys(tx, missing)
  // Idempotency keys first: a request that is answered by its first job does not ask for the name again.
  for (const key of missing.sort((a, b) => a.kind - b.kind)) {
    const holder = held.get(keyText(key))
    const { item } = owners.get(keyText(key)) as { item: Prepared }
    // Held by the very job: an earlier try was committed, and its answer was lost.
    if (!holder || existing.has(item) || holder.jobId === item.job.jobId) continue
    if (key.kind === KEY_KIND.idempotency) {
      if (holder.fingerprint !== key.fingerprint) throw mismatch(key.key)
      for (const other of keyed)
        if (other.keys.some((one) => keyText(one) === keyText(key))) existing.set(other, holder.jobId)
    } else if (!(await takeOverName(tx, key, { jobId: holder.jobId, shard: shardOfJob(holder.jobId) }))) {
      throw nameTaken(key.key)
    }
  }
  return existing
}

async function takeWithin(tx: Queryable | Transaction, keys: readonly Key[], now: Instant): Promise<Set<string>> {
  try {
    if ('setLockTimeout' in tx) await tx.setLockTimeout(LOCK_TIMEOUT_MS)
    return await takeKeys(tx, keys, now)
  } catch (error) {
    if (isLockTimeout(error)) {
      throw new BelfryError('in_progress', 'a request with the same key is still under way: try again', {
        cause: error,
      })
    }
    throw error
  }
}

const nameTaken = (name: string): BelfryError =>
  new BelfryError('name_taken', `another job is called "${name}"`, {
    complaints: [{ path: 'name', message: `another job is called "${name}"` }],
  })

const mismatch = (key: string): BelfryError =>
  new BelfryError('idempotency_mismatch', `the idempotency key "${key}" was used with another request`, {
    complaints: [{ path: 'idempotencyKey', message: 'was used with another request' }],
  })
