import type { Instant } from '../runtime/clock.ts'
import { MINUTE_MS, SECOND_MS } from '../schedule/duration.ts'
import type { Facts } from './explain-facts.sql.ts'
import { type InForce, readTimesOf } from './explain-timeline.ts'
import type { Range } from './filter.ts'

/**
 * What a person means by an instant: 09:00 is the minute that begins then, 09:00:30 the second, and only what has
 * milliseconds is that very instant. A nominal time that is exactly the instant wins over others in it.
 */
export function meantBy(at: Instant): Range {
  if (at % MINUTE_MS === 0) return { from: at, to: at + MINUTE_MS }
  if (at % SECOND_MS === 0) return { from: at, to: at + SECOND_MS }
  return { from: at, to: at + 1 }
}

/** Every nominal time that something is recorded of, in order; those of a schedule are for the schedule to say. */
function recordedTimes(facts: Facts, { from, to }: Range): Instant[] {
  const times = [
    ...facts.live.map(({ nominalAt }) => nominalAt),
    ...facts.attempts.map(({ nominalAt }) => nominalAt),
    ...(facts.isOneOff && facts.timer?.nominalAt != null ? [facts.timer.nominalAt] : []),
    ...facts.skips.flatMap((skip) => (skip.to - skip.from === 1 ? [skip.from] : [])),
  ]
  return [...new Set(times.filter((at) => at >= from && at < to))].sort((one, other) => one - other)
}

/**
 * The nominal times in a range, in order: what was recorded, and what each schedule has for as long as it counted. Where the
 * work has come to the end of a schedule it says so, without a time: whoever asks may stop there.
 */
export function* nominalTimes(
  { facts, timeline, created }: { facts: Facts; timeline: readonly InForce[]; created: Instant },
  range: Range,
): Generator<{ at: Instant | null; reached: Instant }> {
  const recorded = recordedTimes(facts, range)
  let next = 0
  for (const inForce of timeline) {
    const until = Math.min(inForce.until, range.to - 1)
    if (inForce.until < range.from || inForce.after >= range.to) continue
    const schedule = readTimesOf(inForce)?.schedule
    let last = Math.max(inForce.after, range.from - 1, created - 1)
    let fire = schedule?.next(last) ?? null
    while (true) {
      const known = recorded[next] ?? Number.POSITIVE_INFINITY
      const at: Instant = Math.min(known, fire ?? Number.POSITIVE_INFINITY)
      if (at > until) break
      if (known === at) next++
      yield { at, reached: at }
      last = at
      if (fire === at) fire = schedule?.next(last) ?? null
    }
    yield { at: null, reached: until + 1 }
  }
}

/** The first of them; null: there is none. */
export function firstNominal(known: Parameters<typeof nominalTimes>[0], range: Range): Instant | null {
  for (const { at } of nominalTimes(known, range)) if (at !== null) return at
  return null
}
