import { JOB_STATUS } from '../intake/job-row.sql.ts'
import { ATTEMPT_REASON, FAILURE_CLASS, nameOf, OUTCOME, RUN_STATE, SKIP_REASON } from '../job/states.ts'
import { dueOf } from '../promotion/due.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { EndedAttempt, Facts, LiveRun, SkipFact } from './explain-facts.sql.ts'
import { type Rule, ruleAgainst } from './explain-rule.ts'
import {
  type CalendarChange,
  cancelOf,
  type InForce,
  inForceAt,
  type Pause,
  pauseAt,
  pausesOf,
  readTimesOf,
} from './explain-timeline.ts'
import type { Doer, Reason, Verdict } from './explanation.ts'

/** What is known without asking further; sentences and look-ups come after it. */
export interface Judgement {
  at: Instant
  nominalAt: Instant | null
  verdict: Verdict
  reason: Reason | null
  inForce: InForce
  dueAt: Instant | null
  live: LiveRun | null
  /** Oldest first. */
  attempts: readonly EndedAttempt[]
  skip: Pick<SkipFact, 'from' | 'to' | 'count'> & { decidedAt: Instant | null }
  by: Doer | null
  /** Which rule of the schedule. */
  rule: Pick<Rule, 'message' | 'day'> | null
  nearest: { before: Instant | null; after: Instant | null } | null
  /** The run that a blocked one waits for. */
  behind: Instant | null
}

export interface Known {
  facts: Facts
  timeline: readonly InForce[]
  calendarChanges: readonly CalendarChange[]
  /** Only the days of calendars around what was asked about have been read. */
  hasManyDays: boolean
  created: Instant
  now: Instant
  /** What ended before this is forgotten. */
  historySince: Instant
}

/** How far back the fire time before an instant is looked for. */
const NEARBY_MS = 400 * DAY_MS
/** Of a job that may run more often than this, nobody counts when it has. */
const MAX_COUNTED = 10_000
const NO_SKIP = { from: 0, to: 0, count: null, decidedAt: null }

/**
 * The verdict about one instant. What was recorded comes first, whatever the schedule says today: a live run, an ended one,
 * a skip. Where nothing is recorded the definition of that time and the changes of the job tell why, and what is to come.
 */
export function judge(at: Instant, known: Known): Judgement {
  const { facts, timeline } = known
  const inForce = inForceAt(timeline, at)
  const blank: Judgement = {
    at,
    nominalAt: at,
    verdict: 'unknown',
    reason: 'nothing_recorded',
    inForce,
    dueAt: null,
    live: null,
    attempts: facts.attempts.filter(({ nominalAt }) => nominalAt === at),
    skip: NO_SKIP,
    by: null,
    rule: null,
    nearest: null,
    behind: null,
  }
  const live = facts.live.find(({ nominalAt }) => nominalAt === at)
  if (live) return judgeLive(blank, live, facts)
  if (blank.attempts.length > 0) return judgeEnded(blank)
  const skip = facts.skips.find(({ from, to }) => from <= at && at < to)
  if (skip && (skip.from === at || fires(inForce, at))) return judgeSkipped(blank, skip, facts)
  return judgeUnrecorded(blank, known)
}

const fires = (inForce: InForce, at: Instant): boolean => readTimesOf(inForce)?.schedule.next(at - 1) === at

function judgeLive(blank: Judgement, live: LiveRun, facts: Facts): Judgement {
  const found = { ...blank, live, dueAt: live.dueAt }
  if (live.state === RUN_STATE.leased)
    return { ...found, verdict: 'running', reason: live.cancelRequested ? 'cancel_requested' : null }
  if (live.state === RUN_STATE.ready) return { ...found, verdict: 'waiting', reason: 'ready' }
  if (live.state === RUN_STATE.blocked) {
    const behind = facts.alive.find(({ nominalAt }) => nominalAt !== live.nominalAt)?.nominalAt ?? null
    return { ...found, verdict: 'waiting', reason: 'blocked', behind }
  }
  if (live.state === RUN_STATE.limited) return { ...found, verdict: 'waiting', reason: 'key_limited' }
  if (live.state === RUN_STATE.dependent) return { ...found, verdict: 'waiting', reason: 'dependency' }
  return { ...found, verdict: 'waiting', reason: waitsAfter(blank.attempts.at(-1)) }
}

function waitsAfter(last: EndedAttempt | undefined): Reason {
  if (last === undefined || last.final) return 'redriven'
  if (last.failureClass === FAILURE_CLASS.circuit_open) return 'circuit_open'
  const outcome = nameOf(OUTCOME, last.outcome)
  if (outcome === 'snoozed' && last.failureClass === FAILURE_CLASS.rate_limited) return 'origin_limited'
  return outcome === 'snoozed' || outcome === 'released' ? outcome : 'backoff'
}

/** Why a run ended before it began; for all others it was too late. */
const UNRUN = new Map<number | null, Reason>([
  [ATTEMPT_REASON.superseded, 'superseded'],
  [ATTEMPT_REASON.not_needed, 'dependency'],
  [ATTEMPT_REASON.on_limit, 'on_limit'],
])

/** A run that nobody ever performed did not run, though it was there; one past its deadline was leased and not begun. */
function judgeEnded(blank: Judgement): Judgement {
  const last = blank.attempts.at(-1) as EndedAttempt
  const wasPerformed = blank.attempts.some(({ leasedAt, outcome }) => leasedAt !== null && outcome !== OUTCOME.skipped)
  if (wasPerformed) return { ...blank, verdict: 'ran', reason: null, dueAt: last.dueAt }
  const reason = last.outcome === OUTCOME.canceled ? 'canceled' : (UNRUN.get(last.reason) ?? 'start_deadline')
  return { ...blank, verdict: 'skipped', reason, dueAt: last.dueAt, skip: { ...NO_SKIP, decidedAt: last.finishedAt } }
}

function judgeSkipped(blank: Judgement, skip: SkipFact, facts: Facts): Judgement {
  const reason = nameOf(SKIP_REASON, skip.reason) ?? 'outside_bounds'
  const by = reason === 'paused' ? (pauseAt(pausesOf(facts), blank.at)?.by ?? null) : null
  return { ...blank, verdict: 'skipped', reason, skip, by }
}

function judgeUnrecorded(blank: Judgement, known: Known): Judgement {
  const { facts, created, now, historySince } = known
  const { at } = blank
  const never = { ...blank, verdict: 'never' as const }
  if (at < created) return { ...never, nominalAt: null, reason: 'not_created', nearest: nearestOf(known, at) }
  if (at < historySince) return { ...blank, nominalAt: null, reason: 'history_expired' }
  if (facts.isOneOff) return judgeOneOff(blank, known)
  const cancel = cancelOf(facts)
  const { times } = blank.inForce
  if (times === null) {
    if (facts.timer === null) return { ...blank, nominalAt: null }
    if (facts.definition.follows) return { ...never, nominalAt: null, reason: 'dependency' }
    return {
      ...blank,
      nominalAt: null,
      verdict: 'waiting',
      reason: 'not_planned',
      by: pausesOf(facts).at(-1)?.by ?? null,
    }
  }
  if ('unreadable' in times) {
    const rule = { message: times.unreadable, day: null }
    return { ...blank, nominalAt: null, reason: 'schedule_unreadable', rule }
  }
  const rule = ruleAgainst(times, at)
  const isOver = cancel !== null && at > cancel.at.getTime()
  if (rule !== null) return { ...never, nominalAt: null, reason: rule.rule, rule, nearest: nearestOf(known, at) }
  if (isOver) return { ...never, reason: cancel.wasCompleted ? overBy(blank) : 'canceled', by: cancel }
  const pause = pauseAt(pausesOf(facts), at)
  if (pause) return judgePaused(blank, pause, now)
  if (facts.timer === null) {
    const isCompleted =
      facts.status === JOB_STATUS.completed && (blank.inForce.maxRuns !== null || at > facts.updatedAt)
    return isCompleted ? { ...never, reason: overBy(blank) } : blank
  }
  return judgeDue(blank, known)
}

const overBy = ({ inForce }: Judgement): Reason => (inForce.maxRuns === null ? 'completed' : 'max_runs')

/** What falls into a pause is decided when somebody resumes the job; until then it may still be caught up. */
function judgePaused(blank: Judgement, { from, until, by }: Pause, now: Instant): Judgement {
  const { at } = blank
  if (until === null && at > now)
    return { ...blank, verdict: 'will_run', reason: 'job_paused', dueAt: dueIn(blank, at), by }
  const skip = { from: from + 1, to: (until ?? now) + 1, count: null, decidedAt: until }
  return { ...blank, verdict: 'skipped', reason: 'paused', skip, by }
}

/** A fire time of a job that goes on: to come, just due, or decided and not to be found. */
function judgeDue(blank: Judgement, { facts, now }: Known): Judgement {
  const { at, inForce } = blank
  const { timer } = facts
  if (timer === null || timer.nominalAt === null) return { ...blank, verdict: 'waiting', reason: 'not_planned' }
  const dueAt = dueIn(blank, at)
  const left = timer.remainingRuns
  const times = readTimesOf(inForce)
  if (at >= timer.nominalAt && left !== null && times) {
    const schedule = timer.nominalAt >= at - NEARBY_MS ? times.schedule : times.whole()
    const before = schedule.count(timer.nominalAt - 1, at - 1, Math.min(left, MAX_COUNTED))
    if (before >= left) return { ...blank, verdict: 'never', reason: 'max_runs' }
  }
  if (at > now) return { ...blank, verdict: 'will_run', reason: null, dueAt }
  if (timer.nominalAt > at) return blank
  return { ...blank, verdict: 'waiting', reason: dueAt > now ? 'jitter' : 'not_promoted', dueAt }
}

function dueIn({ inForce }: Judgement, at: Instant): Instant {
  const times = readTimesOf(inForce)
  return times === null ? at : dueOf(at, inForce.jitterMs, times.schedule)
}

function judgeOneOff(blank: Judgement, { facts, now }: Known): Judgement {
  const { timer } = facts
  const planned = timer?.nominalAt ?? facts.live[0]?.nominalAt ?? facts.attempts[0]?.nominalAt ?? null
  if (timer === null || timer.nominalAt !== blank.at) {
    const side = planned === null ? null : planned < blank.at ? 'before' : 'after'
    const nearest = { before: null, after: null, ...(side === null ? {} : { [side]: planned }) }
    return { ...blank, verdict: 'never', nominalAt: null, reason: 'one_off', nearest }
  }
  const pause = facts.pausedAt === null ? undefined : pausesOf(facts).at(-1)
  if (pause) {
    const verdict = blank.at > now ? 'will_run' : 'waiting'
    return { ...blank, verdict, reason: 'job_paused', dueAt: blank.at, by: pause.by }
  }
  if (blank.at > now) return { ...blank, verdict: 'will_run', reason: null, dueAt: timer.dueAt }
  return { ...blank, verdict: 'waiting', reason: 'not_promoted', dueAt: timer.dueAt }
}

/** The fire times around an instant, as the definition of that time has them, since the job was created. */
function nearestOf({ timeline, created }: Known, at: Instant): Judgement['nearest'] {
  const times = readTimesOf(inForceAt(timeline, Math.max(at, created)))
  if (times === null) return null
  const before = at <= created ? null : times.schedule.latest(at - 1, Math.max(created, at - NEARBY_MS) - 1)
  const after = times.schedule.next(Math.max(at, created - 1))
  if (after !== null && after < at + NEARBY_MS) return { before, after }
  return { before, after: times.whole().next(Math.max(at, created - 1)) }
}
