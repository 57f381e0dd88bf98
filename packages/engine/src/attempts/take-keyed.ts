import type { Claimed } from '../leases/lease-picked.ts'
import type { Transaction } from '../store/database.ts'
import { claimKeyed, type KeyedClaim, type KeyedEffects, MAX_ROUNDS, newEffects } from './claim-keyed.ts'
import { claimLimited, type LimitedClaimDeps } from './claim-limited.ts'
import type { Taken } from './claimer.ts'
import { type FaultyClaims, isFault } from './faulty-claims.ts'

export interface KeyedClaimDeps extends LimitedClaimDeps {
  cancelGraceMs: number
  faulty: FaultyClaims
  /** Runs that have a key were claimed, and that is committed. */
  onKeyedClaim(effects: KeyedEffects): void
}

/** Claims runs that have a key. One key that cannot be claimed by stops no other: of what fails the first half is claimed, and so on, until it is the one. */
export async function takeKeyed(deps: KeyedClaimDeps, claim: KeyedClaim): Promise<Taken> {
  const { faulty } = deps
  const looked = new Set<string>()
  try {
    return await decideOnce(deps, claim, { maxRounds: MAX_ROUNDS, looked })
  } catch (error) {
    if (!isFault(error) || looked.size === 0) throw error
    if (looked.size === 1) return passOver(error)
  }
  for (let count = claim.places.length; ; ) {
    count = Math.max(1, count >> 1)
    looked.clear()
    try {
      const taken = await decideOnce(deps, { ...claim, places: claim.places.slice(0, count) }, { maxRounds: 1, looked })
      return { ...taken, mayBeMore: true }
    } catch (error) {
      if (!isFault(error) || looked.size === 0) throw error
      if (looked.size === 1) return passOver(error)
    }
  }

  function passOver(error: unknown): Taken {
    for (const key of looked) faulty.addKey(key, claim.queueId, error)
    return { claimed: [], mayBeMore: true, reached: new Map() }
  }
}

async function decideOnce(
  deps: KeyedClaimDeps,
  claim: KeyedClaim,
  reach: { maxRounds: number; looked: Set<string> },
): Promise<Taken> {
  const { db, limited, cancelGraceMs, faulty, onKeyedClaim } = deps
  const { queueId, places } = claim
  const isLimited = limited.has(queueId)
  const terms = { ...reach, cancelGraceMs, isQueueHeld: isLimited, passedOver: faulty.keys }
  let effects = newEffects(terms)
  const attempt = (tx: Transaction, limit: number): Promise<Claimed[]> => {
    // It may have to be done twice.
    effects = newEffects(terms)
    return claimKeyed(tx, { ...claim, places: places.slice(0, limit) }, effects)
  }
  const taken = isLimited
    ? await claimLimited(deps, queueId, places.length, attempt)
    : { claimed: await db.transaction((tx) => attempt(tx, places.length)), mayBeMore: false }
  onKeyedClaim(effects)
  const { claimed } = taken
  return {
    claimed,
    reached: effects.reached,
    mayBeMore: taken.mayBeMore || effects.mayBeMore || claimed.length === places.length,
    isHeld: claimed.length === 0 && effects.heldElsewhere.size > 0,
  }
}
