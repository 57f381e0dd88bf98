import type { Ended, Finish, GoesOn } from '../../attempts/finish.sql.ts'
import { retryDecision } from '../../job/retry.ts'
import { type FailureClass, OUTCOME } from '../../job/states.ts'
import { agesFrom } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { withoutNul } from '../../store/without-nul.ts'
import type { ActiveRun } from './active-run.ts'
import { Verdict } from './verdict.ts'

const MAX_ERROR_CHARACTERS = 4_096
const MAX_RESULT_BYTES = 65_536
/** As JSON writes it; behind a backslash that is itself escaped it is just a text. */
const WRITTEN_NUL = /(?<!\\)(?:\\\\)*\\u0000/

/** An attempt that somebody has performed: a handler here, or a worker elsewhere. */
export type Attempted = Pick<ActiveRun, 'lease' | 'definition' | 'startedAt'>

/** `notBegun`: nothing was done, and the run goes back. */
export type End = { returned: unknown } | { threw: unknown } | { notBegun: true }

/** Null: the attempt goes on without this node. */
export type Judge = (run: ActiveRun, end: End, now: Instant, random: Random) => Finish | null

/** Turns what a handler did into how its attempt ends. */
export function judge(run: ActiveRun, end: End, now: Instant, random: Random): Finish {
  if ('notBegun' in end) return { ...released(run, now), startedAt: null }
  const said = 'returned' in end ? end.returned : end.threw
  if (isVerdict(said)) return judgeVerdict(run, said, now, random)
  if ('returned' in end) {
    const result = resultJson(end.returned)
    if (run.attempt === 1 && !run.checkpointed && result === null) {
      return { kind: 'succeeded', fence: run.lease, startedAt: run.startedAt, finishedAt: now }
    }
    return { ...ended(run, now), outcome: OUTCOME.succeeded, result }
  }
  if (run.aborted === 'canceled')
    return { ...ended(run, now), outcome: OUTCOME.canceled, failureClass: 'canceled', error: describeError(end.threw) }
  if (run.aborted === 'stopping' && !run.lease.atMostOnce) return released(run, now)
  return failed(run, run.aborted === 'timeout' ? 'timeout' : 'handler_error', describeError(end.threw), now, random)
}

/** A failure that counts: another attempt after its backoff, or the end. */
export function failed(
  run: Attempted,
  failureClass: FailureClass,
  error: string,
  now: Instant,
  random: Random,
  retryAfterMs?: number,
): Finish {
  if (run.lease.atMostOnce && failureClass === 'timeout') {
    return { ...ended(run, now), outcome: OUTCOME.lost, failureClass: 'timeout', error }
  }
  return tryAgain(run, failureClass, error, now, random, retryAfterMs)
}

/** What the retry policy says about a failure that is known to be one. */
export function tryAgain(
  run: Attempted,
  failureClass: FailureClass,
  error: string,
  now: Instant,
  random: Random,
  retryAfterMs?: number,
): Ended | GoesOn {
  const decision = retryDecision(
    run.definition.retry,
    {
      failures: run.lease.failures + 1,
      agesFrom: agesFrom(run.lease),
      now,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
    random,
  )
  if (!decision.retry) return { ...ended(run, now), outcome: OUTCOME.failed, failureClass, error }
  return {
    ...goesOn(run, now),
    outcome: OUTCOME.failed,
    failureClass,
    error,
    counted: true,
    nextDueAt: now + decision.delayMs,
    turn: null,
  }
}

/** The node stops and will not wait longer. What became of work that may be done at most once nobody knows: it is lost. */
export function givenUp(run: ActiveRun, now: Instant): Finish {
  if (!run.lease.atMostOnce || !run.hasBegun) return released(run, now)
  return {
    ...ended(run, now),
    outcome: OUTCOME.lost,
    failureClass: 'lost',
    error: 'the node stopped before the handler ended',
  }
}

/** Given back: the attempt keeps its number, the failure count stays. */
export function released(run: Attempted, now: Instant): Finish {
  return { ...goesOn(run, now), outcome: OUTCOME.released, counted: false, nextDueAt: now, turn: null }
}

function judgeVerdict(run: ActiveRun, { verdict }: Verdict, now: Instant, random: Random): Finish {
  switch (verdict.kind) {
    case 'retry_in':
      return failed(run, 'handler_error', clean(verdict.reason), now, random, verdict.delayMs)
    case 'fail':
      return {
        ...ended(run, now),
        outcome: OUTCOME.failed,
        failureClass: 'handler_error',
        error: clean(verdict.reason),
      }
    case 'cancel':
      return { ...ended(run, now), outcome: OUTCOME.canceled, failureClass: 'canceled', error: clean(verdict.reason) }
    case 'snooze':
      return {
        ...goesOn(run, now),
        outcome: OUTCOME.snoozed,
        counted: false,
        nextDueAt: now + verdict.delayMs,
        turn: null,
      }
  }
}

export const ended = (run: Attempted, now: Instant) =>
  ({
    kind: 'ended',
    fence: run.lease,
    startedAt: run.startedAt,
    finishedAt: now,
    failureClass: null,
    statusCode: null,
    error: null,
    result: null,
  }) as const

export const goesOn = (run: Attempted, now: Instant) =>
  ({
    kind: 'goes_on',
    fence: run.lease,
    startedAt: run.startedAt,
    finishedAt: now,
    failureClass: null,
    statusCode: null,
    error: null,
  }) as const

/** A result that cannot be stored does not undo the work that was done: it is left out. */
export function resultJson(value: unknown): string | null {
  if (value === undefined) return null
  try {
    const json = JSON.stringify(value)
    return json === undefined || Buffer.byteLength(json) > MAX_RESULT_BYTES || WRITTEN_NUL.test(json) ? null : json
  } catch {
    return null
  }
}

/** Handlers throw whatever they like; a getter or a proxy in it may throw again. */
function describeError(error: unknown): string {
  try {
    if (error instanceof Error) return clean(error.message === '' ? error.name : `${error.name}: ${error.message}`)
    return clean(typeof error === 'string' ? error : (JSON.stringify(error) ?? String(error)))
  } catch {
    return 'an error that cannot be shown'
  }
}

export const clean = (text: string): string => withoutNul(text.slice(0, MAX_ERROR_CHARACTERS)).toWellFormed()

/** Anything can be thrown, and some things throw when they are looked at. */
function isVerdict(said: unknown): said is Verdict {
  try {
    return said instanceof Verdict
  } catch {
    return false
  }
}
