import { BelfryError } from './errors.ts'
import { isRecord } from './input/read-fields.ts'
import { heldKeys } from './intake/held-keys.sql.ts'
import { forgottenBefore } from './intake/keys.sql.ts'
import type { TenantScope } from './tenant-scope.ts'

/** Longer than any key may be. */
const MAX_KEY_LENGTH = 1_024

/**
 * Throws `quota_exceeded` if the tenant may not have these jobs as well. Who has already made some of them asks for no more
 * than the rest: a request that is sent again is answered as it was, also by a tenant that is at its quota since. What was
 * made is only looked up when the quota would be passed.
 */
export async function admitJobs(scope: TenantScope, jobs: readonly unknown[]): Promise<void> {
  const { engine, caller } = scope
  try {
    await engine.quotas.admitJobs(caller.tenantId, jobs.length)
  } catch (error) {
    if (!(error instanceof BelfryError) || error.code !== 'quota_exceeded') throw error
    const fresh = jobs.length - (await countRepeated(scope, jobs))
    if (fresh === jobs.length) throw error
    if (fresh > 0) await engine.quotas.admitJobs(caller.tenantId, fresh)
  }
}

/** How many of the jobs would be answered by one that is there, or that stands before them. */
async function countRepeated({ engine, caller }: TenantScope, jobs: readonly unknown[]): Promise<number> {
  const keys = jobs.flatMap((job) => (isRecord(job) && isKey(job.idempotencyKey) ? [job.idempotencyKey] : []))
  const different = [...new Set(keys)]
  if (different.length === 0) return 0
  const now = engine.clock.now()
  const at = { shards: engine.shards, now, forgottenBefore: forgottenBefore(now, engine.historyDays) }
  const held = await heldKeys(engine.db, caller.tenantId, different, at)
  return keys.length - different.length + held.size
}

/** Whether it can be looked up at all; whether it is a good one is said later. */
const isKey = (key: unknown): key is string =>
  typeof key === 'string' && key.length <= MAX_KEY_LENGTH && !key.includes('\0')
