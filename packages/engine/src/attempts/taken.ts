import type { Claimed } from '../leases/take-lease.ts'
import type { Claim } from './claim-runs.sql.ts'
import type { Kind } from './pick.ts'

/** What is to be claimed, and for whom. */
export interface Wanted extends Claim {
  kind: Kind
}

export interface Taken {
  claimed: readonly Claimed[]
  /** All that could be taken was there, or nobody knows. */
  mayBeMore: boolean
  /** By priority, the turn before which nothing is ready any more, as far as the claim saw. */
  reached: ReadonlyMap<number, number>
  /** A run that may be performed at most once was left, since no slot was free for it. */
  onceWaits: boolean
  /** Another transaction holds what is left: it is to be looked at again soon, not at once. */
  isHeld: boolean
}

/** A claim of which nothing is known but that it is to be made again. */
export const NOT_KNOWN: Taken = { claimed: [], mayBeMore: true, reached: new Map(), onceWaits: false, isHeld: false }
