import { gateKeyOf } from '../job/gate-key.ts'
import { shardOfKey } from '../job/ids.ts'
import { LIMIT_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Rate } from './gcra.ts'

/**
 * Limits of queues and of origins: rows of `limits`. Whoever leases what is limited holds the row until its commit, counts live
 * leases in a statement of its own after that, and takes no more than is free. `used_at` is from when on anything is leased
 * by a limit at all: whoever made it sets it when all statements that did not know of it have ended.
 */
const COLUMNS = 'l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst'
const LOCK = statement(
  'lock_shared_limit',
  `select ${COLUMNS}, l.rate_at, l.used_at, l.has_older from belfry.limits l where l.shard = $1 and l.kind = $2 and l.key = $3 for update skip locked`,
)
const EXISTS = statement(
  'look_at_shared_limit',
  'select l.key from belfry.limits l where l.shard = $1 and l.kind = $2 and l.key = $3',
)
const CHARGE = statement(
  'charge_rate',
  'update belfry.limits l set rate_at = $4 where l.shard = $1 and l.kind = $2 and l.key = $3',
)
const PUT = statement(
  'put_shared_limit',
  `insert into belfry.limits as l (used_at, key, tenant_id, max_running, rate_count, rate_period_ms, rate_burst, shard, kind, name, has_older)
   values (to_timestamp($10::float8 / 1000), $3, $4, $6, $7, $8, $9, $1, $2, $5, true)
   on conflict (shard, kind, key) do update set max_running = excluded.max_running, rate_count = excluded.rate_count,
     rate_period_ms = excluded.rate_period_ms, rate_burst = excluded.rate_burst
   returning (l.xmax = 0)`,
)
const OPEN = statement(
  'open_shared_limit',
  'update belfry.limits l set used_at = to_timestamp($4::float8 / 1000) where l.shard = $1 and l.kind = $2 and l.key = $3',
)
const REMOVE = statement(
  'remove_shared_limit',
  'delete from belfry.limits l where l.shard = $1 and l.kind = $2 and l.key = $3',
)
const OF_QUEUES = statement(
  'limits_of_queues',
  `select l.key, ${COLUMNS} from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = any($1::bigint[])`,
)
const OF_QUEUE = statement(
  'limit_of_queue',
  `select ${COLUMNS}, l.rate_at, l.used_at, l.has_older from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = $1`,
)

/** Which row it is. */
export interface LimitRef {
  shard: number
  kind: number
  key: string
}

/** What is limited: how many are leased at a time, how many start in a period, or both. */
export interface Limits {
  maxRunning: number | null
  rate: Rate | null
}

export interface HeldLimit extends Limits {
  rateAt: number
  /** Before this nothing is leased: what began without knowing of the limit is not counted yet. */
  usedAt: Instant
  /** Of a queue: leases from before there was a limit may not have a slot of it yet. */
  hasOlder: boolean
}

type Columns = readonly [number | null, number | null, string | null, number | null]

export const queueLimitRef = (queueId: number, shards: number): LimitRef => ({
  shard: shardOfKey(0, `queue/${queueId}`, shards),
  kind: LIMIT_KIND.queue,
  key: String(queueId),
})

export const originLimitRef = (tenantId: number, origin: string, shards: number): LimitRef => ({
  shard: shardOfKey(tenantId, `origin/${origin}`, shards),
  kind: LIMIT_KIND.origin,
  key: gateKeyOf('origin', tenantId, origin),
})

/** As those who would wait for it call it. */
export const limitRow = ({ shard, kind, key }: LimitRef): string => `limit ${shard} ${kind} ${key}`

const placeOf = ({ shard, kind, key }: LimitRef): [number, number, string] => [shard, kind, key]

/** Holds the row until the end of the transaction; or tells that somebody else does, or that there is no limit any more. */
export async function lockLimit(tx: Queryable, ref: LimitRef): Promise<HeldLimit | 'held' | 'none'> {
  const [row] = await tx.query<HeldRow>(LOCK, placeOf(ref))
  if (row === undefined) return (await tx.query(EXISTS, placeOf(ref))).length > 0 ? 'held' : 'none'
  return heldOf(row)
}

type HeldRow = readonly [...Columns, rateAt: string, usedAt: Instant, hasOlder: boolean]

const heldOf = (row: HeldRow): HeldLimit => ({
  ...limitsOf(row),
  rateAt: Number(row[4]),
  usedAt: row[5],
  hasOlder: row[6],
})

/** To be looked at alone; null: the queue has no limit. */
export async function readQueueLimit(db: Queryable, queueId: number): Promise<HeldLimit | null> {
  const [row] = await db.query<HeldRow>(OF_QUEUE, [queueId])
  return row ? heldOf(row) : null
}

/** Remembers what has started; the row is held. */
export async function chargeRate(tx: Queryable, ref: LimitRef, rateAt: number): Promise<void> {
  await tx.execute(CHARGE, [...placeOf(ref), rateAt])
}

/** True: there was none before. */
export async function putLimit(
  tx: Queryable,
  ref: LimitRef,
  { tenantId, name, usedAt, maxRunning, rate }: Limits & { tenantId: number; name: string; usedAt: Instant },
): Promise<boolean> {
  const ofRate = rate === null ? [null, null, null] : [rate.limit, rate.periodMs, rate.burst]
  const [row] = await tx.query<[boolean]>(PUT, [...placeOf(ref), tenantId, name, maxRunning, ...ofRate, usedAt])
  return row?.[0] ?? false
}

export async function openLimit(tx: Queryable, ref: LimitRef, now: Instant): Promise<void> {
  await tx.execute(OPEN, [...placeOf(ref), now])
}

/** False: there was none. */
export async function removeLimit(tx: Queryable, ref: LimitRef): Promise<boolean> {
  return (await tx.execute(REMOVE, placeOf(ref))) > 0
}

/** By queue, the limits of those that have any. */
export async function readQueueLimits(db: Queryable, queueIds: readonly number[]): Promise<Map<number, Limits>> {
  const rows = await db.query<[string, ...Columns]>(OF_QUEUES, [queueIds])
  return new Map(rows.map(([key, ...columns]) => [Number(key), limitsOf(columns)]))
}

export function limitsOf([maxRunning, limit, periodMs, burst]: readonly [...Columns, ...unknown[]]): Limits {
  const hasRate = limit !== null && periodMs !== null && burst !== null
  return { maxRunning, rate: hasRate ? { limit, periodMs: Number(periodMs), burst } : null }
}
