import type { CatchUp } from '../job/definition.ts'
import type { SkipReason } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Schedule } from '../schedule/schedule.ts'

/** A nominal time that is less than this late is simply run; catch-up is for what comes after downtime. */
export const FRESH_MS = 60_000
/** A skip range longer than this is not counted out. */
const MAX_COUNTED = 10_000

export interface SkipRange {
  /** Half-open: the first nominal time skipped, and the first not skipped. */
  from: Instant
  to: Instant
  reason: SkipReason
  count: number | null
}

export interface Decision {
  /** Nominal times that become runs, oldest first. */
  runs: Instant[]
  skips: SkipRange[]
  decidedUntil: Instant | null
  /** The next nominal time, which may be due already; null when the schedule is used up. */
  next: Instant | null
  remainingRuns: number | null
}

export interface Undecided {
  nominalAt: Instant
  /** How much later than its nominal time the job is due: what is late is counted from there. */
  delayMs: number
  decidedUntil: Instant | null
  remainingRuns: number | null
}

/**
 * Decides the next nominal times that share one fate: which run, at most `maxRuns`, which are skipped and why, what comes
 * next. Whoever asks asks again until what comes next is not due.
 */
export function decide(
  job: Undecided,
  schedule: Schedule,
  catchUp: CatchUp,
  { at, maxRuns }: { at: Instant; maxRuns: number },
): Decision {
  const now = at - job.delayMs
  const none: Decision = {
    runs: [],
    skips: [],
    decidedUntil: job.decidedUntil,
    next: job.nominalAt,
    remainingRuns: job.remainingRuns,
  }
  if (job.nominalAt > now) return none
  if (now - job.nominalAt < FRESH_MS) return run(none, [job.nominalAt], schedule)
  const lateUntil = now - FRESH_MS
  const firstFresh = schedule.next(lateUntil)
  const kept = keptOfLate(job.nominalAt, schedule, catchUp, {
    now,
    lateUntil,
    hasFresh: firstFresh !== null && firstFresh <= now,
  })
  if (kept === null) return skip(none, firstFresh, lateUntil, schedule)
  const afterSkip = kept > job.nominalAt ? skip(none, kept, kept - 1, schedule) : none
  const runs = [kept]
  while (catchUp.policy === 'all' && runs.length < maxRuns) {
    const next = schedule.next(runs.at(-1) as Instant)
    if (next === null || next > lateUntil) break
    runs.push(next)
  }
  return run(afterSkip, runs, schedule)
}

/** The first of the late nominal times that still runs; null when all of them are skipped. */
function keptOfLate(
  first: Instant,
  schedule: Schedule,
  catchUp: CatchUp,
  { now, lateUntil, hasFresh }: { now: Instant; lateUntil: Instant; hasFresh: boolean },
): Instant | null {
  if (catchUp.policy === 'none') return null
  const windowStart = Math.max(first, now - catchUp.windowMs)
  if (catchUp.policy === 'latest') return hasFresh ? null : schedule.latest(lateUntil, windowStart - 1)
  return firstOfLast(schedule, windowStart, lateUntil, catchUp.max)
}

/** The first of the last `max` fire times in [from, until], by halving the range: counting stops at `max`. */
function firstOfLast(schedule: Schedule, from: Instant, until: Instant, max: number): Instant | null {
  let tooMany = from - 1
  let few = until
  if (schedule.count(tooMany, until, max + 1) <= max) few = tooMany
  while (few - tooMany > 1) {
    const middle = Math.floor((few + tooMany) / 2)
    if (schedule.count(middle, until, max + 1) > max) tooMany = middle
    else few = middle
  }
  const first = schedule.next(few)
  return first !== null && first <= until ? first : null
}

function run(decision: Decision, nominalTimes: Instant[], schedule: Schedule): Decision {
  const allowed = decision.remainingRuns === null ? nominalTimes : nominalTimes.slice(0, decision.remainingRuns)
  const remainingRuns = decision.remainingRuns === null ? null : decision.remainingRuns - allowed.length
  const last = allowed.at(-1) ?? decision.decidedUntil
  return {
    ...decision,
    runs: allowed,
    decidedUntil: last,
    next: remainingRuns === 0 || last === null ? null : schedule.next(last),
    remainingRuns,
  }
}

/**
 * Skips everything from the undecided nominal time up to and including `lastUntil`; `to` comes next. The range ends there
 * and not at `to`, which may be far ahead: until then another schedule may take over, whose times are not skipped.
 */
function skip(decision: Decision, to: Instant | null, lastUntil: Instant, schedule: Schedule): Decision {
  const from = decision.next as Instant
  const end = lastUntil + 1
  return {
    ...decision,
    skips: [{ from, to: end, reason: 'catch_up_expired', count: countOf(schedule, from, end) }],
    decidedUntil: schedule.latest(end - 1, from - 1) ?? decision.decidedUntil,
    next: to,
  }
}

/** How many nominal times lie in [from, to); null when they are too many to be counted out. */
export function countOf(schedule: Schedule, from: Instant, to: Instant): number | null {
  const count = schedule.count(from - 1, to - 1, MAX_COUNTED + 1)
  return count > MAX_COUNTED ? null : count
}
