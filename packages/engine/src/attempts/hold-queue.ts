import { gcra, type Rate } from '../concurrency/gcra.ts'
import type { LimitedQueues, Shortage } from '../concurrency/limited-queues.ts'
import { chargeRate, type HeldLimit, lockLimit, queueLimitRef } from '../concurrency/shared-limits.sql.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import { SILENT_MS, type Transaction } from '../store/database.ts'
import { countLeased, giveOlderSlots } from './queue-slots.sql.ts'

export interface HoldQueueDeps {
  clock: Clock
  random: Random
  shards: number
  limited: LimitedQueues
}

/** Ends are told; this is for when they are not. */
const FULL_MS = 1_000
/** Another claim holds the limit for a few milliseconds. */
const HELD_MS = 8
/** A rate of thousands a second is not served one by one, as far as its burst allows to wait. */
const GATHER_MS = 20

/** A queue whose limit the transaction holds. */
export interface HeldQueue {
  /** So many runs may be leased now. */
  allowed: number
  /** Why not all that are wanted. */
  shortage: Shortage | null
  /** Remembers what was leased. */
  charge(leased: number): Promise<void>
}

/** Holds the limit of a queue and counts after that; or tells that another transaction holds it, or that there is none any more. */
export async function holdQueue(
  tx: Transaction,
  { clock, shards }: HoldQueueDeps,
  queueId: number,
  wanted: number,
): Promise<HeldQueue | 'held' | 'none'> {
  const ref = queueLimitRef(queueId, shards)
  const limit = await lockLimit(tx, ref)
  if (typeof limit === 'string') return limit
  const now = clock.now()
  const { rate, rateAt } = limit
  return {
    ...(await roomOf(tx, queueId, limit, wanted, now)),
    async charge(leased) {
      if (rate !== null && leased > 0) await chargeRate(tx, ref, gcra(rateAt, rate, now, leased).rateAt)
    },
  }
}

/** After the commit: when the queue is looked at again. Answers whether there may be more to claim. */
export function queueFound(
  { clock, random, limited }: HoldQueueDeps,
  queueId: number,
  found: 'held' | 'none' | { queue: HeldQueue; leased: number },
): boolean {
  if (found === 'none') {
    limited.forget(queueId)
    return true
  }
  if (found === 'held') {
    limited.found(queueId, { of: 'lock', until: clock.now() + 1 + Math.round(random.float() * HELD_MS) })
    return true
  }
  const isMore = found.leased === found.queue.allowed
  limited.found(queueId, isMore ? found.queue.shortage : null)
  return isMore
}

/** How many may be leased now, and what the others wait for if that is not all that is wanted. */
async function roomOf(
  tx: Transaction,
  queueId: number,
  { maxRunning, hasOlder, rate, rateAt, usedAt }: HeldLimit,
  wanted: number,
  now: Instant,
): Promise<{ allowed: number; shortage: Shortage | null }> {
  if (usedAt > now) return { allowed: 0, shortage: { of: 'lock', until: Math.min(usedAt, now + GATHER_MS) } }
  if (hasOlder) await giveOlderSlots(tx, queueId, now - usedAt > SILENT_MS ? 'no more' : 'perhaps more')
  const free =
    maxRunning === null ? wanted : Math.max(0, maxRunning - (await countLeased(tx, queueId, { maxRunning, hasOlder })))
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
