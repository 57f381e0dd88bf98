import { delayMsOf } from './delay.ts'

/** What a handler may say instead of just returning or throwing. Return it or throw it. */
export type VerdictKind =
  | { kind: 'retry_in'; delayMs: number; reason: string }
  | { kind: 'fail'; reason: string }
  | { kind: 'cancel'; reason: string }
  | { kind: 'snooze'; delayMs: number }

export class Verdict extends Error {
  override readonly name = 'Verdict'
  readonly verdict: VerdictKind

  constructor(verdict: VerdictKind) {
    super(verdict.kind === 'snooze' ? 'snoozed' : verdict.reason)
    this.verdict = verdict
  }
}

export const verdicts = {
  /** Failed; the next attempt comes after `delay`, whatever the backoff says. Counts as a failure. */
  retryIn: (delay: string, reason = 'the handler asked for a retry'): Verdict =>
    new Verdict({ kind: 'retry_in', delayMs: delayMsOf(delay), reason: String(reason) }),
  /** Failed for good: no further attempt, a dead letter. */
  fail: (reason = 'the handler gave up'): Verdict => new Verdict({ kind: 'fail', reason: String(reason) }),
  /** The run shall not be performed after all. */
  cancel: (reason = 'canceled by its handler'): Verdict => new Verdict({ kind: 'cancel', reason: String(reason) }),
  /** Not now: again after `delay`. Does not count as a failure. */
  snooze: (delay: string): Verdict => new Verdict({ kind: 'snooze', delayMs: delayMsOf(delay) }),
}

/** By shape: a handler that is shared with the library may have its verdicts from there. */
export function verdictIn(said: unknown): VerdictKind | null {
  try {
    if (said instanceof Verdict) return said.verdict
    if (!(said instanceof Error) || said.name !== 'Verdict' || !('verdict' in said)) return null
    const { verdict } = said as { verdict: VerdictKind }
    return KINDS.has(verdict.kind) ? verdict : null
  } catch {
    // Anything can be thrown, and some things throw when they are looked at.
    return null
  }
}

const KINDS: ReadonlySet<string> = new Set(['retry_in', 'fail', 'cancel', 'snooze'])
