import { gcra, type Rate } from '../concurrency/gcra.ts'
import type { LimitedQueues, Shortage } from '../concurrency/limited-queues.ts'
import { chargeRate, type HeldLimit, lockLimit, queueLimitRef } from '../concurrency/shared-limits.sql.ts'
import type { Claimed } from '../leases/lease-picked.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Database, Transaction } from '../store/database.ts'
import { countLeased } from './claim-limited.sql.ts'
import type { Taken } from './claimer.ts'

export interface LimitedClaimDeps {
  db: Database
  clock: Clock
  random: Random
  shards: number
  limited: LimitedQueues
}

/** Ends are told; this is for when they are not. */
const FULL_MS = 1_000
/** Whoever holds the limit commits within a few milliseconds. */
const HELD_MS = 8
/** A rate of thousands a second is not served one by one, as far as its burst allows to wait. */
const GATHER_MS = 20

/**
 * Claims from a queue that has a limit, in one transaction: takes the queue's row in `limits`, counts in a statement of its
 * own, which sees whatever was leased by the last who held the row, and lets `claim` take no more than is free.
 */
export async function claimLimited(
  deps: LimitedClaimDeps,
  queueId: number,
  wanted: number,
  claim: (tx: Transaction, limit: number) => Promise<Claimed[]>,
): Promise<Taken> {
  const { db, clock, random, shards, limited } = deps
  const ref = queueLimitRef(queueId, shards)
  const found = await db.transaction(async (tx) => {
    const held = await lockLimit(tx, ref)
    if (typeof held === 'string') return held
    const now = clock.now()
    const room = await roomOf(tx, queueId, held, wanted, now)
    const claimed = room.allowed === 0 ? [] : await claim(tx, room.allowed)
    if (held.rate !== null && claimed.length > 0)
      await chargeRate(tx, ref, gcra(held.rateAt, held.rate, now, claimed.length).rateAt)
    return { claimed, isMore: claimed.length === room.allowed, shortage: room.shortage }
  })
  if (found === 'none') {
    limited.forget(queueId)
    return { claimed: [], mayBeMore: true }
  }
  if (found === 'held') {
    limited.found(queueId, { of: 'lock', until: clock.now() + 1 + Math.round(random.float() * HELD_MS) })
    return { claimed: [], mayBeMore: true }
  }
  limited.found(queueId, found.isMore ? found.shortage : null)
  return { claimed: found.claimed, mayBeMore: found.isMore }
}

/** How many may be leased now, and what the others wait for if that is not all that is wanted. */
async function roomOf(
  tx: Transaction,
  queueId: number,
  { maxRunning, rate, rateAt, usedAt }: HeldLimit,
  wanted: number,
  now: Instant,
): Promise<{ allowed: number; shortage: Shortage | null }> {
  if (usedAt > now) return { allowed: 0, shortage: { of: 'lock', until: Math.min(usedAt, now + GATHER_MS) } }
  const free = maxRunning === null ? wanted : Math.max(0, maxRunning - (await countLeased(tx, queueId, maxRunning)))
  const full: Shortage | null = free < wanted ? { of: 'slots', until: now + FULL_MS } : null
  if (rate === null || free === 0) return { allowed: Math.min(wanted, free), shortage: full }
  const { allowed, nextAt } = gcra(rateAt, rate, now, Math.min(wanted, free))
  if (allowed === Math.min(wanted, free)) return { allowed, shortage: full }
  return { allowed, shortage: { of: 'rate', until: nextAt + gatherMs(rate) } }
}

/** For how long runs may gather without any of the rate being lost. */
function gatherMs({ limit, periodMs, burst }: Rate): number {
  const intervalMs = periodMs / limit
  return intervalMs >= GATHER_MS ? 0 : Math.floor(Math.min(GATHER_MS, ((burst - 1) * intervalMs) / 2))
}
