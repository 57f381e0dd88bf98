import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'

/** So many fire times are compared, newest first; what lies before them counts as different. */
const MAX_COMPARED = 1_000

/** The last instant in (after, until] at which only one of two schedules fires; null: there they are the same. */
export function lastDifference(
  one: Schedule,
  other: Schedule,
  { after, until }: { after: Instant; until: Instant },
): Instant | null {
  let before = until
  for (let compared = 0; compared < MAX_COMPARED; compared++) {
    const fire = one.latest(before, after)
    const otherFire = other.latest(before, after)
    if (fire !== otherFire) return Math.max(fire ?? after, otherFire ?? after)
    if (fire === null) return null
    before = fire - 1
  }
  return before
}
