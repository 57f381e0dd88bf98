import type { Bounds } from './clauses.ts'
import type { Reading } from './reading.ts'
import { frequencyOf } from './recurring.ts'

const OF_THE_CLOCK: ReadonlySet<string> = new Set(['second', 'minute', 'hour'])

/**
 * `every day until 31 march at 9`: the only time that is said is the time of day, and the end is that of its day. Read as the
 * end's, it would leave the schedule to fire at midnight, which nobody meant.
 */
export function settleTimeAfterEnd({ words, groups, bounds }: Reading): void {
  const { end } = bounds
  if (end?.time === undefined || startSaysTime(bounds)) return
  const without = groups.find((clauses) => {
    const unit = frequencyOf(clauses)?.unit
    return unit !== undefined && !OF_THE_CLOCK.has(unit) && clauses.times === undefined
  })
  if (without === undefined) return
  if (groups.length > 1 || end.day?.part !== undefined || bounds.start?.time !== undefined) {
    throw words.refuse(
      end.time.token,
      'may be the time of day or the time of the end: say the time of day, as in "every day at 9", before the bounds',
    )
  }
  const { time, ...day } = end
  without.times = { token: time.token, list: [time] }
  bounds.end = day
}

/** What begins at a moment fires at its time of day. */
function startSaysTime({ start }: Bounds): boolean {
  if (start === undefined || start.role === 'bounding') return false
  return (start.time ?? start.offset ?? start.day?.time) !== undefined
}
