import type { Finish } from '../../attempts/finish.sql.ts'
import { OUTCOME } from '../../job/states.ts'
import { agesFrom } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import type { ActiveRun } from '../handlers/active-run.ts'
import { type End, ended, goesOn, judge, released, tryAgain } from '../handlers/judge.ts'
import type { Health } from './circuit.ts'
import type { HttpEnd, HttpFailure } from './http-call.ts'

/** What the executor did with a run. */
export type HttpResult =
  | HttpEnd
  /** Nothing was sent: the target is spared, and the run comes back. */
  | { kind: 'held'; until: Instant; error: string; gateKey?: string; failureClass?: 'rate_limited' }
  /** The node stops. */
  | { kind: 'released' }
  /** The target goes on with it, and says by its callback how it ended. */
  | { kind: 'forgotten' }

/** Turns what became of an HTTP call into how its attempt ends. */
export function judgeHttp(run: ActiveRun, end: End, now: Instant, random: Random): Finish | null {
  if (!('returned' in end)) return judge(run, end, now, random)
  const result = end.returned as HttpResult
  switch (result.kind) {
    case 'succeeded': {
      const { statusCode, response } = result
      const { lease, startedAt } = run
      return {
        kind: 'answered',
        fence: lease,
        startedAt,
        finishedAt: now,
        statusCode,
        response,
      }
    }
    case 'failed':
      return judgeFailure(run, result, now, random)
    case 'held':
      return hold(run, result, now)
    case 'released':
      return { ...released(run, now), startedAt: null }
    case 'waits':
    case 'forgotten':
      return null
  }
}

function judgeFailure(run: ActiveRun, given: HttpFailure, now: Instant, random: Random): Finish {
  const failure = asAborted(run, given)
  const { failureClass, error, retryable, retryAfterMs, statusCode, response } = failure
  const seen = { statusCode, response }
  if (run.aborted === 'canceled')
    return { ...ended(run, now), ...seen, outcome: OUTCOME.canceled, failureClass: 'canceled', error }
  if (run.aborted === 'stopping' && !run.lease.atMostOnce) return released(run, now)
  const isUnknown = failure.written && (failureClass === 'timeout' || failureClass === 'network')
  if (run.lease.atMostOnce && isUnknown)
    return { ...ended(run, now), ...seen, outcome: OUTCOME.lost, failureClass, error }
  if (!retryable) return { ...ended(run, now), ...seen, outcome: OUTCOME.failed, failureClass, error }
  return { ...tryAgain(run, failureClass, error, now, random, retryAfterMs), ...seen }
}

/**
 * A call that was ended by its signal takes that for a cancellation, which is for good. But the signal also tells that time
 * is up, which the call itself may notice a moment later, and that the node stops or has lost the lease.
 */
function asAborted(run: ActiveRun, failure: HttpFailure): HttpFailure {
  if (failure.failureClass !== 'canceled' || run.aborted === 'canceled') return failure
  if (run.aborted === 'timeout')
    return { ...failure, failureClass: 'timeout', error: 'no answer within the timeout', retryable: true }
  return { ...failure, failureClass: 'network', error: 'the call was cut', retryable: true }
}

/** Not counted, and not for longer than the retry policy lets it live. */
function hold(run: ActiveRun, held: HttpResult & { kind: 'held' }, now: Instant): Finish {
  const { until, error, gateKey, failureClass = 'circuit_open' } = held
  const maxAgeMs = run.definition.retry?.maxAgeMs
  const why = { failureClass, error, startedAt: null } as const
  if (maxAgeMs !== undefined && until - agesFrom(run.lease) > maxAgeMs)
    return { ...ended(run, now), ...why, outcome: OUTCOME.failed }
  const away = { outcome: OUTCOME.snoozed, counted: false, nextDueAt: until, turn: null, gateKey }
  return { ...goesOn(run, now), ...why, ...away }
}

/**
 * What the end of a call says about its target. It answers: well, also if it does not like the request. It asks for fewer
 * calls (429): nothing, since that is how a healthy target behaves, and `Retry-After` is heeded.
 */
export function healthOf(run: ActiveRun, end: HttpEnd): Health {
  if (end.kind !== 'failed') return 'well'
  if (run.aborted !== null && run.aborted !== 'timeout') return null
  const { failureClass } = asAborted(run, end)
  if (failureClass === 'timeout' || failureClass === 'network') return 'ill'
  if (end.statusCode === null || end.statusCode === 429) return null
  return end.statusCode >= 500 ? 'ill' : 'well'
}
