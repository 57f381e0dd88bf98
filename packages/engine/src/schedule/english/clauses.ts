import type { Amount } from './read-amount.ts'
import type { MonthDay, Weekdays } from './read-days.ts'
import type { NamedDay } from './read-named-day.ts'
import type { TimeOfDay } from './read-time-of-day.ts'
import type { Token } from './tokens.ts'
import type { PartOfDay, Unit } from './vocabulary.ts'

/**
 * What the parts of a text say, before it is asked what they mean together. Each may be said once; their order does not
 * matter, except that a time or day after `starting` and `until` belongs to those.
 */
export interface Clauses {
  now?: { token: Token }
  /** `every 2 hours`. */
  frequency?: Frequency
  /** `in 10 minutes`. */
  offset?: Amount
  dates?: { token: Token; days: readonly NamedDay[] }
  weekdays?: Weekdays
  monthDays?: { token: Token; days: readonly MonthDay[] }
  /** Of which months the days are: of all, this, the next, or those that `months` names. */
  scope?: { token: Token; kind: 'every' | 'this' | 'next' }
  months?: { token: Token; list: readonly number[]; isRecurring: boolean }
  times?: { token: Token; list: readonly TimeOfDay[] }
  part?: { token: Token; part: PartOfDay }
  minutes?: { token: Token; unit: 'minute' | 'second'; list: readonly number[] }
  window?: Window
}

export interface Frequency {
  token: Token
  count: number
  unit: Unit
}

/** Both ends belong to it. */
export interface Window {
  token: Token
  from: TimeOfDay
  to: TimeOfDay
}

/** What holds for all of a text. */
export interface Bounds {
  start?: Bound
  end?: Bound
  /** `for 2 weeks`: as long after the start. */
  length?: Amount
  count?: { token: Token; times: number }
  /** `once`, beside something that recurs. */
  isOnce?: true
}

/**
 * `starting` says when it begins and may say at which time of day; `counted from` is the first fire time, whatever the clock
 * says; `not before` and `until` only bound.
 */
export type BoundRole = 'starting' | 'counted from' | 'bounding'

export interface Bound {
  token: Token
  role: BoundRole
  /** Absent: only a time was said. */
  day?: NamedDay
  offset?: Amount
  time?: TimeOfDay
}
