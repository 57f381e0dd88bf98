import type { Instant } from '../../runtime/clock.ts'
import { DAY_MS } from '../duration.ts'
import type { Bound, BoundRole, Bounds } from './clauses.ts'
import type { Amount } from './read-amount.ts'
import type { NamedDay } from './read-named-day.ts'
import { inPart, type TimeOfDay } from './read-time-of-day.ts'
import { addToLocal, type Day, instantAt, type Today } from './today.ts'
import type { Words } from './words.ts'

/** Where a recurring schedule begins, and how exactly that was said. */
export interface Start {
  at: Instant
  /** Absent: only a time was said. */
  day?: Day
  /** Absent: only a day was said. */
  timeMs?: number
  role: BoundRole
}

export interface ResolvedBounds {
  start?: Start
  endAt?: Instant
  maxRuns?: number
}

export function resolveBounds(
  words: Words,
  { start, end, length, count, isOnce }: Bounds,
  today: Today,
): ResolvedBounds {
  const resolved: ResolvedBounds = {}
  if (start !== undefined) resolved.start = { ...startOf(words, start, today), role: start.role }
  const from = resolved.start?.at ?? today.now
  if (end !== undefined) resolved.endAt = endOf(words, end, today, Math.max(from, today.now))
  if (length !== undefined) resolved.endAt = after(today, from, length)
  const token = end?.token ?? length?.token
  if (token !== undefined && (resolved.endAt ?? 0) <= Math.max(from, today.now)) {
    throw words.refuse(token, 'names an end that is past, or comes before the start')
  }
  if (count !== undefined) resolved.maxRuns = count.times
  else if (isOnce) resolved.maxRuns = 1
  return resolved
}

/** Days and months on the calendar of the zone, the rest as elapsed time. */
export function after(today: Today, from: Instant, amount: Amount): Instant {
  const isElapsed = amount.months === 0 && amount.days === 0
  const local = isElapsed ? undefined : addToLocal(today.zone.localOf(from), amount)
  return (local === undefined ? from : today.zone.instantOf(local)) + amount.ms
}

/** The time that a day has by itself or was given, if any; midnight at the end of an evening is 24:00. */
export function timeMsOf(words: Words, day: NamedDay | undefined, time: TimeOfDay | undefined): number | undefined {
  if (day?.time !== undefined && time !== undefined) {
    throw words.refuse(time.token, `is one time too many: ${day.token.raw} has one already`)
  }
  if (day?.time !== undefined && 'localMs' in day.time) return day.time.localMs
  if (time === undefined) return undefined
  return day?.part === undefined ? time.ms : inPart(words, time, day.part).ms
}

function startOf(words: Words, { day, offset, time }: Bound, today: Today): Omit<Start, 'role'> {
  if (offset !== undefined) return exactly(today, after(today, today.now, offset))
  if (day?.time !== undefined && 'instant' in day.time) return exactly(today, day.time.instant)
  const timeMs = timeMsOf(words, day, time)
  if (day === undefined) {
    const at = [today.day, today.day + 1].map((candidate) => instantAt(today, candidate, timeMs ?? 0))
    return { at: at.find((instant) => instant >= today.now) ?? today.now, timeMs: timeMs ?? 0 }
  }
  // A day that began is still to come; a date in the past says from where to count.
  const isAhead = (candidate: Day) => instantAt(today, candidate, timeMs ?? DAY_MS - 1) >= today.now
  const candidates = withNextWeek(day)
  const chosen = candidates.find(isAhead) ?? (day.candidates[0] as Day)
  return { at: instantAt(today, chosen, timeMs ?? 0), day: chosen, ...(timeMs === undefined ? {} : { timeMs }) }
}

function exactly(today: Today, at: Instant): Omit<Start, 'role'> {
  const local = today.zone.localOf(at)
  const day = Math.floor(local / DAY_MS)
  return { at, day, timeMs: local - day * DAY_MS }
}

/** `monday at 9`, said on a Monday at 10. */
function withNextWeek({ candidates, token }: NamedDay): readonly Day[] {
  const [first] = candidates
  return candidates.length === 1 && first !== undefined && /^[a-z]/.test(token.word) && !/^to/.test(token.word)
    ? [first, first + 7]
    : candidates
}

/** A day that is said without a time belongs to the schedule; a time that is said does not. */
function endOf(words: Words, { day, offset, time }: Bound, today: Today, from: Instant): Instant {
  if (offset !== undefined) return after(today, today.now, offset)
  const instants =
    day?.time !== undefined && 'instant' in day.time
      ? [day.time.instant]
      : (day?.candidates ?? []).map((candidate) => {
          const timeMs = timeMsOf(words, day, time)
          return timeMs === undefined ? instantAt(today, candidate + 1, 0) : instantAt(today, candidate, timeMs)
        })
  return instants.find((instant) => instant > from) ?? from
}
