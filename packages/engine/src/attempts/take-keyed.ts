import type { Transaction } from '../store/database.ts'
import type { Claimed } from './claim.sql.ts'
import { type KeyedEffects, newEffects } from './claim-keyed.ts'
import { claimLimited, type LimitedClaimDeps } from './claim-limited.ts'
import type { Taken } from './claimer.ts'

export interface KeyedClaimDeps extends LimitedClaimDeps {
  cancelGraceMs: number
  /** Runs that have a key were claimed, and that is committed. */
  onKeyedClaim(effects: KeyedEffects): void
}

/** A claim of runs that have a key, in a transaction of its own; of a queue that has a limit, in the one that holds that. */
export async function takeKeyed(
  deps: KeyedClaimDeps,
  queueId: number,
  wanted: number,
  claim: (tx: Transaction, limit: number, effects: KeyedEffects) => Promise<Claimed[]>,
): Promise<Taken> {
  const { db, limited, cancelGraceMs, onKeyedClaim } = deps
  const isLimited = limited.has(queueId)
  let effects = newEffects({ cancelGraceMs, isQueueHeld: isLimited })
  const attempt = (tx: Transaction, limit: number) => {
    // It may have to be done twice.
    effects = newEffects({ cancelGraceMs, isQueueHeld: isLimited })
    return claim(tx, limit, effects)
  }
  const taken = isLimited
    ? await claimLimited(deps, queueId, wanted, attempt)
    : { claimed: await db.transaction((tx) => attempt(tx, wanted)), mayBeMore: false }
  onKeyedClaim(effects)
  const { claimed } = taken
  return {
    claimed,
    reached: effects.reached,
    mayBeMore: taken.mayBeMore || effects.mayBeMore || claimed.length === wanted,
    isHeld: claimed.length === 0 && effects.heldElsewhere.size > 0,
  }
}
