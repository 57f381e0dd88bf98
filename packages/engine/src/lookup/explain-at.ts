import type { Instant } from '../runtime/clock.ts'
import type { Facts } from './explain-facts.sql.ts'
import type { InForce } from './explain-timeline.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60_000

/**
 * What a person means by an instant: 09:00 is the minute that begins then, 09:00:30 the second, and only what has
 * milliseconds is that very instant. A nominal time that is exactly the instant wins over others in it.
 */
export function meantBy(at: Instant): { from: Instant; to: Instant } {
  if (at % MINUTE_MS === 0) return { from: at, to: at + MINUTE_MS }
  if (at % SECOND_MS === 0) return { from: at, to: at + SECOND_MS }
  return { from: at, to: at + 1 }
}

/** The first nominal time in [from, to), of what was recorded and of what the schedule has; null: there is none. */
export function firstNominal(
  facts: Facts,
  timeline: readonly InForce[],
  from: Instant,
  to: Instant,
  since: Instant,
): Instant | null {
  let first = Number.POSITIVE_INFINITY
  const offer = (at: Instant | null | undefined) => {
    if (at !== null && at !== undefined && at >= from && at < to) first = Math.min(first, at)
  }
  for (const { nominalAt } of facts.live) offer(nominalAt)
  for (const { nominalAt } of facts.attempts) offer(nominalAt)
  if (facts.isOneOff) offer(facts.timer?.nominalAt)
  for (const skip of facts.skips) if (skip.to - skip.from === 1) offer(skip.from)
  for (const { after, until, times } of timeline) {
    if (times === null || until < from || after >= to) continue
    const fire = times.schedule.next(Math.max(after, from - 1, since - 1))
    if (fire !== null && fire <= until) offer(fire)
  }
  return first === Number.POSITIVE_INFINITY ? null : first
}
