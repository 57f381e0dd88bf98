import type { Claimed } from '../leases/lease-picked.ts'
import { type Transaction, UnknownOutcome } from '../store/database.ts'
import { claimKeyed, type KeyedClaim, type KeyedEffects, MAX_ROUNDS, newEffects } from './claim-keyed.ts'
import { claimLimited, type LimitedClaimDeps } from './claim-limited.ts'
import { type ClaimedWithRoom, claimWithRoom } from './claim-with-room.sql.ts'
import type { Taken } from './claimer.ts'
import { type FaultyClaims, isFault } from './faulty-claims.ts'

export interface KeyedClaimDeps extends LimitedClaimDeps {
  cancelGraceMs: number
  faulty: FaultyClaims
  /** Runs that have a key were claimed, and that is committed. */
  onKeyedClaim(effects: KeyedEffects): void
}

/**
 * Claims runs that have a key. For one holder first those that there is plainly room for, in one statement; what that leaves is
 * decided in a transaction; of a queue that has a limit, in the one that holds that.
 */
export async function takeKeyed(deps: KeyedClaimDeps, claim: KeyedClaim): Promise<Taken> {
  const { limited, faulty } = deps
  const { queueId, places } = claim
  if (limited.has(queueId) || !isForOne(claim) || faulty.isSlow(queueId)) return decideKeyed(deps, claim)
  const { claimed, leavesSome } = await takeWithRoom(deps, claim)
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

async function takeWithRoom({ db, faulty }: KeyedClaimDeps, claim: KeyedClaim): Promise<ClaimedWithRoom> {
  const { queueId, now, levels, places } = claim
  const place = places[0] as { holder: string; leaseUntil: number }
  try {
    return await claimWithRoom(db, { queueId, now, levels, limit: places.length, ...place })
  } catch (error) {
    if (!isFault(error)) throw error
    faulty.addQueue(queueId, error)
    return { claimed: [], leavesSome: true }
  }
}

/** One key that cannot be claimed by stops no other: of what fails the first half is claimed, and so on, until it is the one. */
async function decideKeyed(deps: KeyedClaimDeps, claim: KeyedClaim): Promise<Taken> {
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
