import { claimRuns } from './claim-runs.sql.ts'
import { claimWithinLimits, type LimitsDeps } from './claim-within-limits.ts'
import type { Taken, Wanted } from './taken.ts'

/**
 * Chooses the next runs of a queue and leases them: one statement where no limit concerns them, one transaction where a limit of the
 * queue or of their keys does.
 */
export async function claim(deps: LimitsDeps, wanted: Wanted): Promise<Taken> {
  const { kind, queueId, limit } = wanted
  if (kind === 'keyed' || deps.limited.has(queueId)) return claimWithinLimits(deps, wanted)
  const { claimed, left } = await claimRuns(deps.db, wanted)
  const reached = new Map<number, number>()
  for (const { priority, turn } of claimed) if (turn > (reached.get(priority) ?? turn - 1)) reached.set(priority, turn)
  for (const { priority, turn } of left) if (turn < (reached.get(priority) ?? turn + 1)) reached.set(priority, turn)
  const onceWaits = left.some(({ isOnce }) => isOnce)
  return { claimed, mayBeMore: claimed.length === limit || left.length > 0, reached, onceWaits, isHeld: false }
}
