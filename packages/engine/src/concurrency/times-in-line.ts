import type { Instant } from '../runtime/clock.ts'
import type { Rate } from './gcra.ts'

/**
 * When runs of these costs may start that stand in line for a rate, one behind the other: as soon as the rate allows it if all
 * before them start at their times, and not before those that were given a time already, the last of which is `usedAt`. In
 * milliseconds, not rounded, so that thousands a second keep their distance.
 */
export function timesInLine(
  { rate, rateAt, usedAt, now }: { rate: Rate; rateAt: number; usedAt: Instant; now: Instant },
  costs: readonly number[],
): number[] {
  const { limit, periodMs, burst } = rate
  const intervalMs = periodMs / limit
  let line = Math.max(rateAt / 1_000, now) - burst * intervalMs
  // Those before us in line are not charged yet.
  if (usedAt > now) line = Math.max(line, usedAt)
  return costs.map((cost) => {
    line += cost * intervalMs
    return Math.max(now, line)
  })
}
