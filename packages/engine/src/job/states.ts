/**
 * The words for what can happen to a run, with the numbers that stand for them in the database. A number, once released,
 * keeps its meaning for ever: history is read a year back.
 */

/** `blocked` waits for another run of its job, `limited` for a slot of its key, `dependent` for other jobs: to people all three are blocked. */
export const RUN_STATE = { ready: 0, leased: 1, waiting: 2, blocked: 3, limited: 4, dependent: 5 } as const

/** How an attempt ended. `released` and `snoozed` do not count towards `maxAttempts`. */
export const OUTCOME = {
  succeeded: 1,
  failed: 2,
  canceled: 3,
  lost: 4,
  released: 5,
  snoozed: 6,
  skipped: 7,
} as const

/** Whether an attempt whose outcome is unknown is repeated. */
export const DELIVERY = { at_least_once: 0, at_most_once: 1 } as const
/** Added to the delivery of runs that have a concurrency key: they are claimed apart from all others. */
export const KEYED = 2
export const isKeyed = (delivery: number): boolean => delivery >= KEYED
export const isOnce = (delivery: number): boolean => delivery % KEYED === DELIVERY.at_most_once

/** Who performs the runs of a queue: workers, or nodes that call HTTP targets. */
export const QUEUE_KIND = { worker: 0, http: 1 } as const

/** What a row of `limits` is about: a key that jobs name, a queue, or an origin that is called. */
export const LIMIT_KIND = { key: 0, queue: 1, origin: 2 } as const

/** Why a run exists. */
export const CAUSE = { schedule: 0, create: 1, trigger: 2, backfill: 3, chain: 4, catch_up: 5 } as const

export const FAILURE_CLASS = {
  timeout: 1,
  network: 2,
  http_4xx: 3,
  http_5xx: 4,
  rate_limited: 5,
  handler_error: 6,
  lease_expired: 7,
  canceled: 8,
  lost: 9,
  circuit_open: 10,
  invalid_target: 11,
  start_deadline: 12,
} as const

/** Why an attempt, or a run without one, ended as it did, where outcome and failure class do not say it. */
export const ATTEMPT_REASON = {
  /** A later time of the job took its place: waiting, or ending what was alive. */
  superseded: 1,
  replaced: 2,
  parent_failed: 3,
  not_needed: 4,
  on_limit: 5,
} as const

/** What happens at a nominal time while another run of the job is alive. */
export const OVERLAP = {
  allow: 0,
  skip: 1,
  buffer_one: 2,
  buffer_latest: 3,
  buffer_all: 4,
  cancel_running: 5,
} as const

export const CATCH_UP = { latest: 0, all: 1, none: 2 } as const

/** Why a nominal time has no run. */
export const SKIP_REASON = {
  overlap: 1,
  paused: 2,
  catch_up_expired: 3,
  outside_bounds: 4,
  dst_gap: 5,
  start_deadline: 6,
  superseded: 7,
  dependency: 8,
} as const

export type QueueKind = (typeof QUEUE_KIND)[keyof typeof QUEUE_KIND]
export type RunState = keyof typeof RUN_STATE
export type Outcome = keyof typeof OUTCOME
export type Cause = keyof typeof CAUSE
export type FailureClass = keyof typeof FAILURE_CLASS
export type Overlap = keyof typeof OVERLAP
export type CatchUpPolicy = keyof typeof CATCH_UP
export type SkipReason = keyof typeof SKIP_REASON

const names = new WeakMap<Record<string, number>, string[]>()

/** The word for a number; `undefined` for a number that this program does not know (a newer node wrote it). */
export function nameOf<Words extends Record<string, number>>(
  words: Words,
  value: number,
): (keyof Words & string) | undefined {
  let byValue = names.get(words)
  if (byValue === undefined) {
    byValue = []
    for (const [name, number] of Object.entries(words)) byValue[number] = name
    names.set(words, byValue)
  }
  return byValue[value]
}
