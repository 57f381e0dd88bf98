import type { Definition } from '../job/definition.ts'
import { limitKeyOf, limitNameOf } from '../job/flow-keys.ts'
import { LIMIT_KIND } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Bulk, Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { ON_LIMIT } from './admission.ts'
import { LAST_RATE_AT } from './gcra.ts'
import { type KeyRef, refArrays } from './key-ref.ts'

/**
 * The limits of keys: rows of `limits`, kind 0. A row says what the last writer said; how many slots are taken is never in it,
 * that is counted from live leases. Whoever claims holds the row from before the count until its commit. A row may vanish
 * while nobody needs it: whoever claims makes it again from the definitions of what it claims. `used_at` is when it was last
 * used, or, while runs wait for the rate, when the last of those that have been given a time may start.
 */

const GIVEN = `with u as (
     select * from unnest($1::smallint[], $2::bigint[], $3::int[], $4::text[], $5::boolean[], $6::int[], $7::smallint[], $8::boolean[], $9::int[], $10::bigint[],
       $11::int[])
       as u (shard, key, tenant_id, name, has_slots, max_running, on_limit, has_rate, rate_count, rate_period_ms, rate_burst)
   )`
const MAKE = `insert into belfry.limits (used_at, key, tenant_id, shard, kind, name, max_running, on_limit, rate_count, rate_period_ms, rate_burst)
     select to_timestamp($12::float8 / 1000), u.key, u.tenant_id, u.shard, ${LIMIT_KIND.key}, u.name, u.max_running, u.on_limit, u.rate_count,
       u.rate_period_ms, u.rate_burst
     from u where not exists (
       select from belfry.limits l where l.shard = u.shard and l.kind = ${LIMIT_KIND.key} and l.key = u.key offset 0)
     on conflict do nothing returning key`
/**
 * Where the row says the same already nothing is written and nobody is waited for: most jobs of a key repeat what the first
 * said. What somebody else is just making keeps what he says: who of the two was the last is nobody's to tell. A rate that
 * changes keeps how many runs it is ahead, not for how long it was, and is no further ahead than its burst.
 */
const PUT = statement(
  'put_key_limits',
  `${GIVEN}, made as (
     ${MAKE}
   ), changed as (
     update belfry.limits l set
       max_running = case when d.has_slots then d.max_running else l.max_running end, on_limit = case when d.has_slots then d.on_limit else l.on_limit end,
       rate_count = case when d.has_rate then d.rate_count else l.rate_count end,
       rate_period_ms = case when d.has_rate then d.rate_period_ms else l.rate_period_ms end,
       rate_burst = case when d.has_rate then d.rate_burst else l.rate_burst end,
       rate_at = case when d.has_rate and l.rate_at > $12::float8 * 1000 then coalesce(least(${LAST_RATE_AT}, $12::float8 * 1000
         + least((l.rate_at - $12::float8 * 1000) / (l.rate_period_ms * 1000.0 / l.rate_count)::float8, d.rate_burst)
         * (d.rate_period_ms * 1000.0 / d.rate_count)::float8)::bigint, l.rate_at)
         else l.rate_at end
     from (
       select u.* from u cross join lateral (
         select from belfry.limits l
         where l.shard = u.shard and l.kind = ${LIMIT_KIND.key} and l.key = u.key
           and ((u.has_slots and (l.max_running is distinct from u.max_running or l.on_limit <> u.on_limit))
             or (u.has_rate and (l.rate_count is distinct from u.rate_count or l.rate_period_ms is distinct from u.rate_period_ms
               or l.rate_burst is distinct from u.rate_burst))) limit 1) l) d
     where l.shard = d.shard and l.kind = ${LIMIT_KIND.key} and l.key = d.key
     returning l.key
   )
   select c.key from changed c`,
)
const MAKE_MISSING = statement('make_key_limits', `${GIVEN} ${MAKE}`)
const EXISTING = statement(
  'look_at_key_limits',
  `select k.key from unnest($1::smallint[], $2::bigint[]) as k (shard, key) cross join lateral (
     select from belfry.limits l where l.shard = k.shard and l.kind = ${LIMIT_KIND.key} and l.key = k.key limit 1) l`,
)
const UNUSED = statement(
  'lock_unused_keys',
  `select l.shard, l.key, l.name <> '' from belfry.limits l
   where l.kind = ${LIMIT_KIND.key} and (l.shard, l.kind, l.key) > ($1::smallint, ${LIMIT_KIND.key}::smallint, $2::bigint)
     and l.used_at < to_timestamp($3::float8 / 1000) and l.rate_at < $3::float8 * 1000 and l.paused_at is null
   order by l.shard, l.kind, l.key limit $4 for update skip locked`,
)
/**
 * Which of these keys jobs have that wait for a time, or may be redriven. One look through the timers of a shard for all of them: it is
 * done now and then, and an index would cost each timer that has a key.
 */
const AWAITED = statement(
  'keys_of_timers',
  `select distinct t.limit_key from unnest($1::smallint[]) as s (shard) cross join lateral (
     select t.limit_key from belfry.timers t
     where t.shard = s.shard and t.limit_key is not null and (t.limit_key in (select unnest($2::bigint[]))) is true
     union all
     select d.limit_key from belfry.dead_letters d
     where d.shard = s.shard and d.limit_key is not null and (d.limit_key in (select unnest($2::bigint[]))) is true) t`,
)
/** Sent while the rows are held: nobody claims by them meanwhile, and whoever did before is seen. */
const PURGE = statement(
  'purge_unused_keys',
  `delete from belfry.limits l using unnest($1::smallint[], $2::bigint[]) as k (shard, key)
   where l.shard = k.shard and l.kind = ${LIMIT_KIND.key} and l.key = k.key
     and not exists (select from belfry.runs r where r.shard = k.shard and r.limit_key = k.key offset 0)`,
)

const UNUSED_MS = 86_400_000
const PURGE_BATCH = 1_000
/** For one call: the rest is for the next. */
const MAX_BATCHES = 100

export interface KeyLimit extends KeyRef {
  tenantId: number
  /** What jobs call it; empty: it is the limit of one job. */
  name: string
  /** Undefined: nothing is said of it, and what the row says stays. Null: no limit. */
  slots: { maxRunning: number | null; onLimit: number } | undefined
  rate: { limit: number; periodMs: number; burst: number } | null | undefined
}

/** What a definition says about the limit of its job's runs; null: it has none. */
export function keyLimitOf(
  definition: Definition,
  job: { shard: number; tenantId: number; jobId: string },
): KeyLimit | null {
  const key = limitKeyOf(definition, job.tenantId, job.jobId)
  if (key === null) return null
  const { concurrency, rateLimit } = definition
  return {
    ...{ shard: job.shard, key, tenantId: job.tenantId, name: limitNameOf(definition) ?? '' },
    slots: concurrency && { maxRunning: concurrency.limit, onLimit: ON_LIMIT[concurrency.onLimit ?? 'wait'] },
    rate: rateLimit && {
      ...{ limit: rateLimit.limit, periodMs: rateLimit.periodMs, burst: rateLimit.burst ?? rateLimit.limit },
    },
  }
}

/** The last of each key counts. In the order in which rows are taken. */
function valuesOf(limits: readonly KeyLimit[], now: Instant): unknown[] {
  const last = [...new Map(limits.map((limit) => [limit.key, limit])).values()].sort(byKey)
  return [
    last.map(({ shard }) => shard),
    last.map(({ key }) => key),
    last.map(({ tenantId }) => tenantId),
    last.map(({ name }) => name),
    last.map(({ slots }) => slots !== undefined),
    last.map(({ slots }) => slots?.maxRunning ?? null),
    last.map(({ slots }) => slots?.onLimit ?? ON_LIMIT.wait),
    last.map(({ rate }) => rate !== undefined),
    last.map(({ rate }) => rate?.limit ?? null),
    last.map(({ rate }) => rate?.periodMs ?? null),
    last.map(({ rate }) => rate?.burst ?? null),
    now,
  ]
}

/** Any order will do that is everybody's: as text they are compared in a tenth of the time. */
export const byKey = (a: KeyRef, b: KeyRef): number => a.shard - b.shard || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)

/** Writes what jobs say of their keys; answers the keys whose row said something else before. */
export async function putKeyLimits(tx: Queryable, limits: readonly KeyLimit[], now: Instant): Promise<string[]> {
  if (limits.length === 0) return []
  return (await tx.query<[string]>(PUT, valuesOf(limits, now))).flat()
}

/** Makes rows that are not there; answers the keys of those that were made, which this transaction holds. */
export async function makeKeyLimits(tx: Queryable, limits: readonly KeyLimit[], now: Instant): Promise<Set<string>> {
  return new Set((await tx.query<[string]>(MAKE_MISSING, valuesOf(limits, now))).flat())
}

export async function existingKeys(tx: Queryable, keys: readonly KeyRef[]): Promise<Set<string>> {
  return new Set((await tx.query<[string]>(EXISTING, refArrays(keys))).flat())
}

/**
 * Removes rows that nobody has used for a day and that nothing needs. What several jobs say of a key they share is known by its row
 * alone, so that one stays for as long as any of them waits; the limit of one job is made again from its definition.
 */
export async function purgeUnusedKeys(db: Bulk, now: Instant): Promise<void> {
  let after: KeyRef | null = { shard: -1, key: '0' }
  for (let batch = 0; batch < MAX_BATCHES && after !== null; batch++) {
    const from: KeyRef = after
    after = await db.transaction((tx) =>
      purgeKeyLimits(tx, { after: from, usedBefore: now - UNUSED_MS, limit: PURGE_BATCH }),
    )
  }
}

/** One batch, after a position; answers where the next one begins, or null. */
export async function purgeKeyLimits(
  tx: Queryable,
  { after, usedBefore, limit }: { after: KeyRef; usedBefore: Instant; limit: number },
): Promise<KeyRef | null> {
  const rows = await tx.query<[number, string, boolean]>(UNUSED, [after.shard, after.key, usedBefore, limit])
  if (rows.length === 0) return null
  const awaited = await awaitedKeys(
    tx,
    rows.filter(([, , isShared]) => isShared),
  )
  const unused = rows.filter(([, key]) => !awaited.has(key))
  await tx.execute(PURGE, [unused.map(([shard]) => shard), unused.map(([, key]) => key)])
  const last = rows.at(-1)
  return rows.length < limit || last === undefined ? null : { shard: last[0], key: last[1] }
}

async function awaitedKeys(tx: Queryable, rows: readonly (readonly [number, string, boolean])[]): Promise<Set<string>> {
  if (rows.length === 0) return new Set()
  const shards = [...new Set(rows.map(([shard]) => shard))]
  const found = await tx.query<[string]>(AWAITED, [shards, rows.map(([, key]) => key)])
  return new Set(found.flat())
}
