import { pause } from '../runtime/pause.ts'
import type { Queryable } from '../store/database.ts'
import { liveAmong, renewLeases } from './heartbeat.sql.ts'
import { byLockOrder, type Lease, runKey } from './lease.ts'

const LOCKED_PAUSE_MS = 20

/** Renews these leases and answers those that were live. One whose row another transaction holds is waited for. */
export async function keepLeases(
  db: Queryable,
  leases: readonly Lease[],
  leaseMs: number,
  stopping: AbortSignal,
): Promise<Lease[]> {
  const kept: Lease[] = []
  let left = [...leases].sort(byLockOrder)
  while (left.length > 0 && !stopping.aborted) {
    const renewed = new Map((await renewLeases(db, left, leaseMs)).map((one) => [runKey(one), one.leaseUntil]))
    for (const lease of left) {
      const leaseUntil = renewed.get(runKey(lease))
      if (leaseUntil !== undefined) kept.push(Object.assign(lease, { leaseUntil }))
    }
    const passed = left.filter((lease) => !renewed.has(runKey(lease)))
    if (passed.length === 0) break
    const live = await liveAmong(db, passed)
    left = passed.filter((lease) => live.has(runKey(lease)))
    if (left.length > 0) await pause(LOCKED_PAUSE_MS)
  }
  return kept
}
