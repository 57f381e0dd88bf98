import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'

/** The nominal times in [from, to), oldest first, so many at most. */
export function nominalTimes(schedule: Schedule, from: Instant, to: Instant, limit: number): Instant[] {
  const times: Instant[] = []
  for (let at = schedule.next(from - 1); at !== null && at < to && times.length < limit; at = schedule.next(at)) {
    times.push(at)
  }
  return times
}
