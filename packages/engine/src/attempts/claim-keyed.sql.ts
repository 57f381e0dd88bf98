import type { Candidate } from '../concurrency/admission.ts'
import type { Rate } from '../concurrency/gcra.ts'
import type { KeyRef } from '../concurrency/key-ref.ts'
import { limitsOf } from '../concurrency/shared-limits.sql.ts'
import { LIMIT_KIND, OUTCOME, RUN_STATE } from '../job/states.ts'
import { type ClaimedRow, LEASED, withDefinition } from '../leases/lease-picked.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { tellDependents } from '../store/tell-dependents.ts'
import type { Level } from './claim.sql.ts'

/**
 * The steps of a claim of runs that have a key, in one transaction. A row that is held does not move, so its ctid names it in
 * the statements that follow.
 */
const READY = `r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery >= 2`
/** Keys that somebody else holds are passed over when looking further. */
const OF_OTHER_KEYS = '(r.limit_key = any($5::bigint[])) is not true'
/** Whoever does not hold the queue's limit takes nothing from a queue that has one, whatever its node knows. */
const GUARD = `($6::boolean or not exists (select from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = $1))`
const PICKED = 'r.ctid, r.shard, r.limit_key, r.nominal_at, r.job_id, r.attempt, r.turn, r.priority'
const PICK = statement(
  'pick_keyed_runs',
  `select ${PICKED} from belfry.runs r
   where ${READY} and r.priority = $2 and r.turn >= $3 and ${OF_OTHER_KEYS} and ${GUARD}
   order by r.turn limit $4 for update skip locked`,
)
/** The same over several levels: first where the merged order ends, then no row behind that is touched. */
const PICK_LEVELS = statement(
  'pick_keyed_runs_of_levels',
  `with level as (
     select * from unnest($2::smallint[], $3::bigint[]) as level (priority, watermark) where ${GUARD}
   ), horizon as (
     select max(first.turn) as turn from (
       select head.turn from level cross join lateral (
         select r.turn from belfry.runs r
         where ${READY} and r.priority = level.priority and r.turn >= level.watermark and ${OF_OTHER_KEYS}
         order by r.turn limit $4) head
       order by head.turn limit $4) first
   )
   select head.* from horizon cross join level cross join lateral (
     select ${PICKED} from belfry.runs r
     where ${READY} and r.priority = level.priority and r.turn >= level.watermark and r.turn <= horizon.turn and ${OF_OTHER_KEYS}
     order by r.turn limit $4 for update skip locked) head`,
)
const LOCK = statement(
  'lock_keys',
  `select k.n::int, l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.on_limit, l.paused_at is not null, l.used_at
   from unnest($1::smallint[], $2::bigint[]) with ordinality as k (shard, key, n)
   cross join lateral (
     select l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.on_limit, l.paused_at, l.used_at from belfry.limits l
     where /*shards l*/ l.shard = k.shard and l.kind = ${LIMIT_KIND.key} and l.key = k.key limit 1 for update skip locked) l`,
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
       where /*shards r*/ r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased} limit coalesce(k.max_running, 0)) l) leased
   left join lateral (
     select r.nominal_at from belfry.runs r
     where paused.has_limited and /*shards r*/ r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.limited}
       and r.queue_id <> all (paused.queue_ids)
     order by r.nominal_at limit 1) limited on true
   left join lateral (
     select r.nominal_at from belfry.runs r
     where k.max_running = 1 and /*shards r*/ r.shard = k.shard and r.limit_key = k.key
       and r.state in (${RUN_STATE.ready}, ${RUN_STATE.leased}, ${RUN_STATE.waiting}, ${RUN_STATE.limited}) and r.queue_id <> all (paused.queue_ids)
     order by r.nominal_at limit 1) alive on true
   order by k.n`,
)
const LEASE = statement(
  'lease_keyed_runs',
  `with u as (
     select * from unnest($1::tid[], $2::bigint[], $3::float8[]) as u (ctid, holder, lease_until)
   ), limited as (
     update belfry.runs r set state = ${RUN_STATE.limited} where r.ctid = any ($5::tid[])
   ), leased as (
     update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = u.holder, leased_at = to_timestamp($4::float8 / 1000),
       lease_until = to_timestamp(least(u.lease_until, $4::float8 + r.timeout_ms) / 1000), deadline = to_timestamp(($4::float8 + r.timeout_ms) / 1000)
     from u where r.ctid = u.ctid
     returning ${LEASED}, r.limit_key, r.delivery, r.holder
   ) ${withDefinition('leased', ', t.limit_key, t.delivery, t.holder')}`,
)
/** They never start: nothing vanishes, so each leaves a history row with the number 0. */
const SKIP = statement(
  'skip_keyed_runs',
  `with gone as (
     delete from belfry.runs r where r.ctid = any ($1::tid[])
     returning r.nominal_at, r.due_at, r.job_id, r.tenant_id, r.queue_id, r.job_version, r.shard, r.cause, r.one_off, r.has_dependents, r.limit_key
   ), told as (
     ${tellDependents('gone', { number: '0', outcome: OUTCOME.skipped })}
   )
   insert into belfry.attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, cause, counted, final, error)
   select g.nominal_at, g.due_at, to_timestamp($2::float8 / 1000), g.job_id, g.tenant_id, g.queue_id, g.job_version, 0, g.shard, ${OUTCOME.skipped}, g.cause,
     false, true, case l.max_running when 1 then 'the only slot of ' else 'all ' || l.max_running || ' slots of ' end
       || case when l.name = '' then 'the job' else 'the key "' || l.name || '"' end || case l.max_running when 1 then ' was taken' else ' were taken' end
   from gone g cross join lateral (
     select l.max_running, l.name from belfry.limits l where l.shard = g.shard and l.kind = ${LIMIT_KIND.key} and l.key = g.limit_key limit 1) l
   returning job_id`,
)
/** The oldest of each key that nobody has asked yet; one that somebody holds is just ending, or being renewed: it is asked by the next claim. */
const ASK = statement(
  'ask_oldest_of_keys',
  `with oldest as (
     select r.ctid from unnest($1::smallint[], $2::bigint[], $3::int[]) as k (shard, key, count)
     cross join lateral (
       select r.ctid from belfry.runs r
       where /*shards r*/ r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased} and not r.cancel_requested
       order by r.leased_at limit k.count for update skip locked) r
   )
   update belfry.runs r set cancel_requested = true, lease_until = least(r.lease_until, to_timestamp($4::float8 / 1000))
   where r.ctid = any (array(select o.ctid from oldest o))
   returning r.job_id, r.nominal_at, r.limit_key`,
)
const CHARGE = statement(
  'charge_keys',
  `update belfry.limits l set rate_at = u.rate_at, used_at = greatest(l.used_at, to_timestamp($4::float8 / 1000))
   from unnest($1::smallint[], $2::bigint[], $3::bigint[]) as u (shard, key, rate_at)
   where /*shards l*/ l.shard = u.shard and l.kind = ${LIMIT_KIND.key} and l.key = u.key`,
)
/** What a run counts as stands in its definition alone. */
const COSTS = statement(
  'costs_of_jobs',
  `select u.job_id, coalesce(j.definition, s.definition) #>> '{rateLimit,cost}'
   from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
   left join lateral (select j.definition from belfry.jobs j where /*shards j*/ j.shard = u.shard and j.id = u.job_id limit 1) j on true
   left join lateral (select s.definition from belfry.specs s where /*shards s*/ s.shard = u.shard and s.job_id = u.job_id limit 1) s on true`,
)

export interface PickedRun extends Candidate {
  ctid: string
  shard: number
  key: string
  jobId: string
  turn: number
  priority: number
}

export interface LockedKey extends KeyRef {
  maxRunning: number | null
  rate: Rate | null
  rateAt: number
  onLimit: number
  isPaused: boolean
  usedAt: Instant
}

type PickedRow = [
  ...[ctid: string, shard: number, key: string, nominalAt: Instant, jobId: string, attempt: number, turn: string],
  priority: number,
]

/** In order of turn, level by level from its watermark on, but for runs of some keys; rows that somebody else holds are passed over. */
export async function pickKeyed(
  tx: Queryable,
  pick: {
    queueId: number
    levels: readonly Level[]
    limit: number
    isQueueHeld: boolean
    exceptKeys: readonly string[]
  },
): Promise<PickedRun[]> {
  const { queueId, levels, limit, isQueueHeld, exceptKeys } = pick
  const [only] = levels
  const rows =
    levels.length === 1 && only
      ? await tx.query<PickedRow>(PICK, [queueId, only.priority, only.watermark, limit, exceptKeys, isQueueHeld])
      : await tx.query<PickedRow>(PICK_LEVELS, [
          queueId,
          levels.map((level) => level.priority),
          levels.map((level) => level.watermark),
          limit,
          exceptKeys,
          isQueueHeld,
        ])
  const runs = rows.map(pickedOf)
  return levels.length === 1 ? runs : runs.sort((a, b) => a.turn - b.turn)
}

const pickedOf = (row: PickedRow): PickedRun => ({
  ctid: row[0],
  shard: row[1],
  key: row[2],
  nominalAt: row[3],
  jobId: row[4],
  hasBegun: row[5] > 0,
  cost: 1,
  turn: Number(row[6]),
  priority: row[7],
})

const refArrays = (keys: readonly KeyRef[]): ArrayValues[] => [
  keys.map(({ shard }) => shard),
  keys.map(({ key }) => key),
]

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

export interface CountedKey {
  leased: number
  asked: number
  oldestLimited: Instant | null
  oldest: Instant | null
}

/** In the order of the keys. */
export async function countKeys(tx: Queryable, keys: readonly LockedKey[]): Promise<CountedKey[]> {
  const rows = await tx.query<[number, number, Instant | null, Instant | null]>(COUNT, [
    ...refArrays(keys),
    keys.map(({ maxRunning }) => maxRunning),
  ])
  return rows.map(([leased, asked, oldestLimited, oldest]) => ({ leased, asked, oldestLimited, oldest }))
}

const tids = (runs: readonly PickedRun[]): ArrayValues => runs.map(({ ctid }) => ctid)

export type KeyedRow = [...ClaimedRow, limitKey: string, delivery: number, holder: string]

export function leaseKeyed(
  tx: Queryable,
  lease: readonly PickedRun[],
  places: readonly { holder: string; leaseUntil: Instant }[],
  limited: readonly PickedRun[],
  now: Instant,
): Promise<KeyedRow[]> {
  const taken = places.slice(0, lease.length)
  return tx.query<KeyedRow>(LEASE, [
    tids(lease),
    taken.map(({ holder }) => holder),
    taken.map(({ leaseUntil }) => leaseUntil),
    now,
    tids(limited),
  ])
}

/** Answers the jobs whose runs are gone. */
export async function skipKeyed(tx: Queryable, runs: readonly PickedRun[], now: Instant): Promise<string[]> {
  return (await tx.query<[string]>(SKIP, [tids(runs), now])).flat()
}

export interface Asked {
  jobId: string
  nominalAt: Instant
  key: string
}

export async function askOldest(
  tx: Queryable,
  keys: readonly (KeyRef & { count: number })[],
  graceUntil: Instant,
): Promise<Asked[]> {
  const counts = keys.map(({ count }) => count)
  const rows = await tx.query<[string, Instant, string]>(ASK, [...refArrays(keys), counts, graceUntil])
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
