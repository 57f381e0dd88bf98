import { formatDuration, HOUR_MS } from '../duration.ts'
import { ANY_DAY, type CronDays, cronDays } from './cron-days.ts'
import { type CronTime, stepField, windowTimes } from './cron-times.ts'
import { CLOCK_MS } from './read-amount.ts'
import { expressions, type Meaning, type Recurrence } from './recurrence.ts'

const NOON_MS = 12 * HOUR_MS

type ClockUnit = 'second' | 'minute' | 'hour'

/** How many of a unit make the next larger one: what divides them keeps its place on the clock. */
const WHOLE: Record<ClockUnit, number> = { second: 60, minute: 60, hour: 24 }
const NEXT: Record<ClockUnit, string> = { second: 'a minute', minute: 'an hour', hour: 'a day' }

/**
 * Seconds, minutes and hours. What divides the next larger unit stays on the clock: every 15 minutes is at :00, :15, :30 and
 * :45. Anything else is elapsed time from a first moment. Within a window it is counted from the window's start.
 */
export function clockFrequency(recurrence: Recurrence, unit: ClockUnit): Meaning {
  const { words, clauses, frequency, today, start, begun } = recurrence
  if (clauses.times !== undefined) {
    throw words.refuse(
      clauses.times.token,
      `names a time of day beside "every ${unit}": say "every day", or "starting at"`,
    )
  }
  if (clauses.part !== undefined)
    throw words.refuse(clauses.part.token, 'is not understood here: say "between 6:00 and 12:00"')
  if (clauses.dates !== undefined)
    throw words.refuse(clauses.dates.token, 'is one day: say "starting" or "until" before it')
  const { count } = frequency
  const stepMs = count * (CLOCK_MS[unit] as number)
  const days = daysOf(recurrence)
  const onClock = count < WHOLE[unit] && WHOLE[unit] % count === 0
  if (clauses.window !== undefined) return { cron: windowed(recurrence, days, { unit, stepMs, onClock }) }
  const isOffGrid = begun?.timeMs !== undefined && begun.timeMs % stepMs !== 0
  if (onClock && (!isOffGrid || clauses.minutes !== undefined)) {
    return { cron: expressions(days ?? [ANY_DAY], [onTheClock(recurrence, unit)]) }
  }
  if (clauses.minutes !== undefined)
    throw words.refuse(clauses.minutes.token, `needs a frequency that divides ${NEXT[unit]}`)
  if (days !== undefined && onClock) {
    throw words.refuse(
      frequency.token,
      `stays on the clock where days narrow it, and the start does not: say "not before"`,
    )
  }
  if (days !== undefined) {
    throw words.refuse(
      frequency.token,
      `begins ${count} ${unit}s, which do not divide ${NEXT[unit]}: days cannot narrow them, but "between 9:00 and 17:00" can`,
    )
  }
  return { every: formatDuration({ kind: 'clock', ms: stepMs }), startAt: start?.at ?? today.now }
}

/** The days that narrow it, if any do. */
function daysOf({ words, clauses, begun }: Recurrence): CronDays[] | undefined {
  const { weekdays, monthDays, months } = clauses
  const token = weekdays?.token ?? monthDays?.token ?? months?.token
  if (token === undefined) return undefined
  return cronDays(words, clauses, { token, count: 1, unit: 'day' }, begun)
}

function onTheClock({ words, clauses, frequency }: Recurrence, unit: ClockUnit): CronTime {
  const { minutes } = clauses
  const step = stepField(frequency.count)
  if (minutes === undefined) {
    if (unit === 'second') return { second: step, minute: '*', hour: '*' }
    return unit === 'minute' ? { second: '0', minute: step, hour: '*' } : { second: '0', minute: '0', hour: step }
  }
  const list = minutes.list.join(',')
  if (minutes.unit === 'minute' && unit === 'hour') return { second: '0', minute: list, hour: step }
  if (minutes.unit === 'second' && unit === 'minute') return { second: list, minute: step, hour: '*' }
  const larger = minutes.unit === 'minute' ? 'hour' : 'minute'
  throw words.refuse(minutes.token, `names ${minutes.unit}s of every ${larger}, and "every ${unit}" was said`)
}

interface Step {
  unit: ClockUnit
  stepMs: number
  onClock: boolean
}

function windowed(recurrence: Recurrence, days: CronDays[] | undefined, { unit, stepMs, onClock }: Step): string[] {
  const { words, clauses } = recurrence
  const { from, to, token } = clauses.window as NonNullable<typeof clauses.window>
  if (from.ms === to.ms) throw words.refuse(token, 'begins a window that is empty')
  if (from.isOpen && to.isPm && from.ms + 12 * HOUR_MS < to.ms) {
    throw words.refuse(from.token, 'may be in the morning or in the afternoon: say am or pm')
  }
  // Half a day later it would lie behind the start, so that may be meant: `from 9 to 5`, but not `from 22 to 2`.
  const mayBePm = to.ms < NOON_MS && to.ms + NOON_MS > from.ms
  if (to.ms < from.ms && to.ms === NOON_MS && to.isOpen && to.token.kind === 'number') {
    throw words.refuse(to.token, 'may be noon or midnight: say which', 'midnight')
  }
  if (to.ms < from.ms && to.ms > 0 && to.isOpen && mayBePm && to.token.kind === 'number') {
    throw words.refuse(
      to.token,
      `is ${to.token.raw} in the morning, before the window begins: say pm`,
      `${to.token.raw}pm`,
    )
  }
  const isOvernight = to.ms < from.ms && to.ms > 0
  if (isOvernight && days !== undefined) {
    throw words.refuse(token, 'begins a window over midnight, which days cannot narrow: say two windows, joined by ";"')
  }
  if ([from.ms, to.ms].some((ms) => ms % 60_000 !== 0)) throw words.refuse(token, 'begins a window with seconds in it')
  if (unit === 'second' && !onClock)
    throw words.refuse(recurrence.frequency.token, 'needs seconds that divide a minute')
  if (clauses.minutes !== undefined)
    throw words.refuse(clauses.minutes.token, 'cannot stand beside a window: begin it then')
  // Midnight at the end of a day belongs to the next one, and is left out where days are named.
  const end = to.ms === 0 ? 24 * HOUR_MS - (days === undefined ? 0 : 60_000) : to.ms
  return expressions(days ?? [ANY_DAY], windowTimes(from.ms, end, stepMs))
}
