import { askToStop } from '../leases/ask-to-stop.sql.ts'
import { cancelUnleased, type RunsOfJob, type Successor } from '../ready/end-unrun.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type HeldRun, lockRuns } from './lock-runs.sql.ts'

export interface Stopped {
  /** Nominal times of runs that nobody performed: they are gone. */
  removed: Instant[]
  /** Nominal times of leased runs: their holders are asked to stop. */
  asked: Instant[]
  /** All that were leased, asked or not: each may still end in any way. */
  leased: readonly HeldRun[]
}

/** `canceled`: none of them will be performed any more. `canceling`: one is being performed, and may still succeed. */
export interface Canceled {
  status: 'canceled' | 'canceling'
}

export const canceledOf = ({ leased }: Stopped): Canceled => ({ status: leased.length > 0 ? 'canceling' : 'canceled' })

/**
 * Stops the live runs of a job, or one of them. They are held first: otherwise a run that moves between the two statements, from one
 * attempt to its backoff or from ready to leased, would be seen by neither.
 */
export async function stopLive(
  tx: Queryable,
  runs: RunsOfJob,
  at: { now: Instant; graceMs: number; leased: 'ask' | 'leave'; successor?: Successor },
): Promise<Stopped> {
  const held = await lockRuns(tx, runs)
  const removed = await cancelUnleased(tx, runs, at)
  const asked = at.leased === 'leave' ? [] : await askToStop(tx, runs, at.graceMs)
  return { removed, asked, leased: held.filter(({ isLeased }) => isLeased) }
}
