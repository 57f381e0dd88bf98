import type { HeldKey } from '../concurrency/admission.ts'
import { type KeyRef, refArrays } from '../concurrency/key-ref.ts'
import { limitsOf } from '../concurrency/shared-limits.sql.ts'
import { ATTEMPT_REASON, LIMIT_KIND, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK, NOW } from '../store/database-clock.ts'
import { ENDED_RUN, recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'
import { type PickedRun, placesOf } from './limited-picks.sql.ts'

/** What the transaction of a claim reads and writes about the keys of the runs that it has picked. */
const LOCK = statement(
  'lock_keys',
  `select k.n::int, l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.on_limit, l.paused_at is not null, l.used_at
   from unnest($1::smallint[], $2::bigint[]) with ordinality as k (shard, key, n)
   cross join lateral (
     select l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.on_limit, l.paused_at, l.used_at from belfry.limits l
     where l.shard = k.shard and l.kind = ${LIMIT_KIND.key} and l.key = k.key limit 1 for update skip locked) l`,
)
/**
 * To be sent after the keys are held: it sees what the last holder of each committed. Runs of paused queues keep nobody waiting, nor
 * do such that wait for another run of their job or for other jobs.
 */
const COUNT = statement(
  'count_leased_of_keys',
  `with paused as materialized (
     select array(select q.id from belfry.queues q where q.paused_at is not null) as queue_ids,
       exists (select from belfry.runs r where r.state = ${RUN_STATE.limited}) as has_limited
   )
   select leased.count::int, leased.asked::int, limited.nominal_at, alive.nominal_at
   from paused cross join unnest($1::smallint[], $2::bigint[], $3::int[]) with ordinality as k (shard, key, max_running, n)
   cross join lateral (
     select count(*) as count, count(*) filter (where l.cancel_requested) as asked from (
       select r.cancel_requested from belfry.runs r
       where r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased} limit coalesce(k.max_running, 0)) l) leased
   left join lateral (
     select r.nominal_at from belfry.runs r
     where paused.has_limited and r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.limited}
       and r.queue_id <> all (paused.queue_ids)
     order by r.nominal_at limit 1) limited on true
   left join lateral (
     select r.nominal_at from belfry.runs r
     where k.max_running = 1 and r.shard = k.shard and r.limit_key = k.key
       and r.state in (${RUN_STATE.ready}, ${RUN_STATE.leased}, ${RUN_STATE.waiting}, ${RUN_STATE.limited}) and r.queue_id <> all (paused.queue_ids)
     order by r.nominal_at limit 1) alive on true
   order by k.n`,
)
/** What is said of a run whose key has the limit `l`. */
const SLOTS_TAKEN = `case l.max_running when 1 then 'the only slot of ' else 'all ' || l.max_running || ' slots of ' end
       || case when l.name = '' then 'the job' else 'the key "' || l.name || '"' end || case l.max_running when 1 then ' was taken' else ' were taken' end`
/** They never start. */
const SKIP = statement(
  'skip_keyed_runs',
  `with skipped as (
     delete from belfry.runs r where r.ctid = any ($1::tid[]) returning ${ENDED_RUN}, r.limit_key
   ), gone as (
     select s.*, ${SLOTS_TAKEN} as error
     from skipped s cross join lateral (
       select l.max_running, l.name from belfry.limits l where l.shard = s.shard and l.kind = ${LIMIT_KIND.key} and l.key = s.limit_key limit 1) l
   ), ${recordUnrun('$2', { outcome: OUTCOME.skipped, error: 'e.error', reason: ATTEMPT_REASON.on_limit })}
   select g.job_id from gone g`,
)
/** The oldest of each key that nobody has asked yet; one that somebody holds is just ending, or being renewed: it is asked by the next claim. */
const ASK = statement(
  'ask_oldest_of_keys',
  `with ${CLOCK}, oldest as (
     select r.ctid from unnest($1::smallint[], $2::bigint[], $3::int[]) as k (shard, key, count)
     cross join lateral (
       select r.ctid from belfry.runs r
       where r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased} and not r.cancel_requested
       order by r.leased_at limit k.count for update skip locked) r
   )
   update belfry.runs r set cancel_requested = true, lease_until = least(r.lease_until, to_timestamp((${NOW} + $4::int) / 1000))
   where r.ctid = any (array(select o.ctid from oldest o))
   returning r.job_id, r.nominal_at, r.limit_key`,
)
const CHARGE = statement(
  'charge_keys',
  `update belfry.limits l set rate_at = u.rate_at, used_at = greatest(l.used_at, to_timestamp($4::float8 / 1000))
   from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as u (shard, key, rate_at)
   where l.shard = u.shard and l.kind = ${LIMIT_KIND.key} and l.key = u.key`,
)
/** What a run counts as stands in its definition alone. */
const COSTS = statement(
  'costs_of_jobs',
  `select u.job_id, coalesce(j.definition, s.definition) #>> '{rateLimit,cost}'
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
   left join lateral (select j.definition from belfry.jobs j where j.shard = u.shard and j.id = u.job_id limit 1) j on true
   left join lateral (select s.definition from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s on true`,
)

export interface LockedKey extends KeyRef, Omit<HeldKey, keyof CountedKey> {
  usedAt: Instant
}

/** Those of the keys that nobody else holds; each in order, so that two who insert missing ones do not wait for each other. */
export async function lockKeys(tx: Queryable, keys: readonly KeyRef[]): Promise<LockedKey[]> {
  type Row = [number, number | null, number | null, string | null, number | null, string, number, boolean, Instant]
  const rows = await tx.query<Row>(LOCK, refArrays(keys))
  return rows.map(([n, maxRunning, rateCount, ratePeriodMs, rateBurst, rateAt, onLimit, isPaused, usedAt]) => {
    const { shard, key } = keys[n - 1] as KeyRef
    const { rate } = limitsOf([maxRunning, rateCount, ratePeriodMs, rateBurst])
    return { shard, key, maxRunning, rate, rateAt: Number(rateAt), onLimit, isPaused, usedAt }
  })
}

export type CountedKey = Pick<HeldKey, 'leased' | 'asked' | 'oldestLimited' | 'oldest'>

/** In the order of the keys. */
export async function countKeys(tx: Queryable, keys: readonly LockedKey[]): Promise<CountedKey[]> {
  const rows = await tx.query<[number, number, Instant | null, Instant | null]>(COUNT, [
    ...refArrays(keys),
    keys.map(({ maxRunning }) => maxRunning),
  ])
  return rows.map(([leased, asked, oldestLimited, oldest]) => ({ leased, asked, oldestLimited, oldest }))
}

/** Answers the jobs whose runs are gone. */
export async function skipKeyed(tx: Queryable, runs: readonly PickedRun[], now: Instant): Promise<string[]> {
  return (await tx.query<[string]>(SKIP, [placesOf(runs), now])).flat()
}

export interface Asked {
  jobId: string
  nominalAt: Instant
  key: string
}

export async function askOldest(
  tx: Queryable,
  keys: readonly (KeyRef & { count: number })[],
  graceMs: number,
): Promise<Asked[]> {
  const counts = keys.map(({ count }) => count)
  const rows = await tx.query<[string, Instant, string]>(ASK, [...refArrays(keys), counts, graceMs])
  return rows.map(([jobId, nominalAt, key]) => ({ jobId, nominalAt, key }))
}

export async function chargeKeys(
  tx: Queryable,
  keys: readonly (KeyRef & { rateAt: number })[],
  now: Instant,
): Promise<void> {
  await tx.execute(CHARGE, [...refArrays(keys), keys.map(({ rateAt }) => rateAt), now])
}

/** By job, where it is not 1. */
export async function readCosts(
  tx: Queryable,
  runs: readonly { shard: number; jobId: string }[],
): Promise<Map<string, number>> {
  const rows = await tx.query<[string, string | null]>(COSTS, [
    runs.map(({ shard }) => shard),
    runs.map(({ jobId }) => jobId),
  ])
  return new Map(rows.flatMap(([jobId, cost]) => (cost === null ? [] : [[jobId, Number(cost)] as const])))
}
