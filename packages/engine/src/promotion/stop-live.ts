import { askToStop } from '../leases/ask-to-stop.sql.ts'
import { unpackRunsOf } from '../leases/receipts.sql.ts'
import { cancelUnleased, type RunsOfJob } from '../ready/end-unrun.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'

export interface Stopped {
  /** Nominal times of runs that nobody performed: they are gone. */
  removed: Instant[]
  /** Nominal times of leased runs: their holders are asked to stop. */
  asked: Instant[]
}

/** Stops the live runs of a job, or one of them. What a claim took meanwhile stands in its receipt, and is asked as well. */
export async function stopLive(
  tx: Queryable,
  runs: RunsOfJob,
  at: { now: Instant; graceUntil: Instant; leased: 'ask' | 'leave'; error: string | null },
): Promise<Stopped> {
  const removed: Instant[] = []
  const asked = new Set<Instant>()
  do {
    removed.push(...(await cancelUnleased(tx, runs, at)))
    if (at.leased === 'leave') continue
    for (const nominalAt of await askToStop(tx, runs, at.graceUntil)) asked.add(nominalAt)
  } while (await unpackRunsOf(tx, runs))
  return { removed, asked: [...asked] }
}
