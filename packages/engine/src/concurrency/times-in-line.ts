import type { Instant } from '../runtime/clock.ts'
import type { Rate } from './gcra.ts'

/**
 * When runs of these costs may start that stand in line for a rate, one behind the other. What the rate allows now goes now, though
 * others may have been given a time: those that were late have left it unused. The rest comes behind the last of those, at
 * `usedAt`. In milliseconds, not rounded, so that thousands a second keep their distance.
 */
export function timesInLine(
  { rate, rateAt, usedAt, now }: { rate: Rate; rateAt: number; usedAt: Instant; now: Instant },
  costs: readonly number[],
): number[] {
  const { limit, periodMs, burst } = rate
  const intervalMs = periodMs / limit
  let line = Math.max(rateAt / 1_000, now) - burst * intervalMs
  return costs.map((cost) => {
    line += cost * intervalMs
    if (line <= now) return now
    // Those before us in line are not charged yet.
    if (line < usedAt) line = usedAt + cost * intervalMs
    return line
  })
}
