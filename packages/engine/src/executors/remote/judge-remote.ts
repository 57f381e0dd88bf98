import type { Finish } from '../../attempts/finish.sql.ts'
import { type FailureClass, OUTCOME } from '../../job/states.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { Random } from '../../runtime/random.ts'
import { type Attempted, clean, ended, failed, goesOn } from '../handlers/judge.ts'

/** What a worker says of an attempt that it has performed. */
export interface Completion {
  status: 'succeeded' | 'failed' | 'snoozed' | 'canceled'
  result?: unknown
  error?: { message: string; class?: FailureClass; retryable?: boolean }
  retryInMs?: number
  /** How long its handler worked. */
  durationMs?: number
}

/** Turns what a worker said into how its attempt ends. `result` is JSON that can be kept. */
export function judgeRemote(
  run: Attempted & { hasLeft: boolean },
  said: Completion,
  result: string | null,
  now: Instant,
  random: Random,
): Finish {
  const { error, retryInMs } = said
  switch (said.status) {
    case 'succeeded':
      if (run.lease.attempt === 1 && !run.hasLeft && result === null) {
        return { kind: 'succeeded', fence: run.lease, startedAt: run.startedAt, finishedAt: now }
      }
      return { ...ended(run, now), outcome: OUTCOME.succeeded, result }
    case 'canceled':
      return {
        ...ended(run, now),
        outcome: OUTCOME.canceled,
        failureClass: 'canceled',
        error: clean(error?.message ?? 'canceled by its worker'),
      }
    case 'snoozed':
      return {
        ...goesOn(run, now),
        outcome: OUTCOME.snoozed,
        counted: false,
        nextDueAt: now + (retryInMs ?? 0),
        turn: null,
      }
    case 'failed': {
      const failureClass = error?.class ?? 'handler_error'
      const message = clean(error?.message ?? 'the worker reported a failure')
      const isLost = run.lease.atMostOnce && failureClass === 'lost'
      if (isLost || error?.retryable === false) {
        return { ...ended(run, now), outcome: isLost ? OUTCOME.lost : OUTCOME.failed, failureClass, error: message }
      }
      return failed(run, failureClass, message, now, random, retryInMs)
    }
  }
}
