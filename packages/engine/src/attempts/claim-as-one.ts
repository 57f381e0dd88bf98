import { newHolder } from '../leases/holder.ts'
import type { Lease } from '../leases/lease.ts'
import { recoverLeases } from '../leases/recover.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Random } from '../runtime/random.ts'
import { type Database, UnknownOutcome } from '../store/database.ts'
import { type Claimed, claimRuns } from './claim.sql.ts'
import type { Taken, Wanted } from './claimer.ts'

export interface ClaimDeps {
  db: Database
  clock: Clock
  random: Random
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
  const { db, clock, random, leaseMs, stopping } = deps
  const now = clock.now()
  const holder = newHolder(random)
  let claimed: Claimed[]
  try {
    claimed = await claimRuns(db, { ...wanted, queueId, holder, now, leaseUntil: now + leaseMs })
  } catch (error) {
    if (!(error instanceof UnknownOutcome)) throw error
    await take(await recoverLeases(deps, { holder, backendPid: error.backendPid }, stopping))
    return { claimed: [], mayBeMore: true }
  }
  claimed.sort((a, b) => a.turn - b.turn)
  if (claimed.length > 0) await take(claimed.map(({ lease }) => lease))
  return { claimed, mayBeMore: claimed.length === wanted.limit }
}
