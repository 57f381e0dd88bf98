import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'

/** When a nominal time is due: delayed by the job's own stable offset, never past the next nominal time. */
export function dueOf(nominalAt: Instant, jitterMs: number, schedule: Schedule): Instant {
  if (jitterMs === 0) return nominalAt
  const next = schedule.next(nominalAt)
  return Math.min(nominalAt + jitterMs, next === null ? Number.POSITIVE_INFINITY : next - 1)
}
