import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import type { Claimed } from '../leases/lease-picked.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Logger } from '../runtime/logger.ts'
import { UnknownOutcome } from '../store/database.ts'
import { claimRuns } from './claim.sql.ts'
import { claimFromLimited } from './claim-limited.sql.ts'
import { claimLimited } from './claim-limited.ts'
import type { Taken, Wanted } from './claimer.ts'
import { type KeyedClaimDeps, takeKeyed } from './take-keyed.ts'

export interface ClaimDeps extends KeyedClaimDeps {
  logger: Logger
  leaseMs: number
  stopping: AbortSignal
}

/** Leases ready runs to this node under one holder, and hands them over in order of turn. */
export async function claimAsOne(
  deps: ClaimDeps,
  queueId: number,
  wanted: Wanted,
  take: (leases: Lease[]) => Promise<void>,
): Promise<Taken> {
  const { db, clock, random, limited, leaseMs, stopping } = deps
  const now = clock.now()
  const holder = newHolder(random)
  const claim = { ...wanted, queueId, holder, now, leaseUntil: now + leaseMs }
  const { delivery } = wanted
  let taken: Taken
  try {
    if (delivery === 'keyed') {
      const { levels, limit } = wanted
      const places = Array(limit).fill({ holder, leaseUntil: claim.leaseUntil })
      taken = await takeKeyed(deps, { queueId, now, levels, places })
    } else if (limited.has(queueId)) {
      taken = await claimLimited(deps, queueId, wanted.limit, (tx, limit) =>
        claimFromLimited(tx, { ...claim, delivery, limit }),
      )
    } else taken = takenOf(await claimRuns(db, { ...claim, delivery }), wanted)
  } catch (error) {
    if (!(error instanceof UnknownOutcome)) throw error
    await take(await recoverLeases(deps, { holder, backendPid: error.backendPid }, stopping))
    return { claimed: [], mayBeMore: true }
  }
  const claimed = [...taken.claimed].sort((a, b) => a.turn - b.turn)
  if (claimed.length > 0) await take(claimed.map(({ lease }) => lease))
  return taken
}

const takenOf = (claimed: Claimed[], { limit }: Wanted): Taken => ({ claimed, mayBeMore: claimed.length === limit })
