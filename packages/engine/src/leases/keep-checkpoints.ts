import { pause } from '../runtime/pause.ts'
import type { Queryable } from '../store/database.ts'
import { type Checkpoint, saveCheckpoints } from './checkpoints.sql.ts'
import { liveAmong } from './heartbeat.sql.ts'
import { byLockOrder, runKey } from './lease.ts'

const LOCKED_PAUSE_MS = 20

/** Saves what these attempts leave, each of a run of its own, and answers the keys of those whose lease is no longer live. */
export async function keepCheckpoints(db: Queryable, items: readonly Checkpoint[]): Promise<Set<string>> {
  let left = new Map(
    [...items].sort((a, b) => byLockOrder(a.fence, b.fence)).map((item) => [runKey(item.fence), item] as const),
  )
  const lost = new Set<string>()
  for (;;) {
    for (const saved of await saveCheckpoints(db, [...left.values()])) left.delete(runKey(saved))
    if (left.size === 0) return lost
    // Passed over because another transaction holds the row, or gone.
    const fences = [...left.values()].map((item) => item.fence)
    const live = await liveAmong(db, fences)
    for (const key of left.keys()) if (!live.has(key)) lost.add(key)
    left = new Map([...left].filter(([key]) => live.has(key)))
    if (left.size === 0) return lost
    await pause(LOCKED_PAUSE_MS)
  }
}
