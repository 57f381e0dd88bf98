import { type Transaction, UnknownOutcome } from '../store/database.ts'
import type { Claimed } from './claim.sql.ts'
import { claimKeyed, type KeyedClaim, type KeyedEffects, newEffects } from './claim-keyed.ts'
import { claimLimited, type LimitedClaimDeps } from './claim-limited.ts'
import { claimWithRoom } from './claim-with-room.sql.ts'
import type { Taken } from './claimer.ts'

export interface KeyedClaimDeps extends LimitedClaimDeps {
  cancelGraceMs: number
  /** Runs that have a key were claimed, and that is committed. */
  onKeyedClaim(effects: KeyedEffects): void
}

/**
 * Claims runs that have a key. For one holder first those that there is plainly room for, in one statement; what that leaves is
 * decided in a transaction; of a queue that has a limit, in the one that holds that.
 */
export async function takeKeyed(deps: KeyedClaimDeps, claim: KeyedClaim): Promise<Taken> {
  const { queueId, places } = claim
  if (deps.limited.has(queueId) || !isForOne(claim)) return decideKeyed(deps, claim)
  const { claimed, leavesSome } = await claimWithRoom(deps.db, {
    ...{ queueId, now: claim.now, levels: claim.levels, limit: places.length },
    ...(places[0] as { holder: string; leaseUntil: number }),
  })
  if (!leavesSome) return { claimed, mayBeMore: claimed.length === places.length }
  try {
    const rest = await decideKeyed(deps, { ...claim, places: places.slice(claimed.length) })
    return { ...rest, claimed: [...claimed, ...rest.claimed], isHeld: rest.isHeld === true && claimed.length === 0 }
  } catch (error) {
    // Whoever does not know what became of the rest asks for all that the holder has.
    if (claimed.length === 0 || error instanceof UnknownOutcome) throw error
    return { claimed, mayBeMore: true, reached: new Map() }
  }
}

const isForOne = ({ places }: KeyedClaim): boolean =>
  places.length > 0 && places.every(({ holder }) => holder === places[0]?.holder)

async function decideKeyed(deps: KeyedClaimDeps, claim: KeyedClaim): Promise<Taken> {
  const { db, limited, cancelGraceMs, onKeyedClaim } = deps
  const { queueId, places } = claim
  const isLimited = limited.has(queueId)
  let effects = newEffects({ cancelGraceMs, isQueueHeld: isLimited })
  const attempt = (tx: Transaction, limit: number): Promise<Claimed[]> => {
    // It may have to be done twice.
    effects = newEffects({ cancelGraceMs, isQueueHeld: isLimited })
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
