import { FAILURE_CLASS, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Why a run waits that the limit of an origin has put aside: by these words it is found again. */
export const slotsError = (origin: string, limit: number): string =>
  `${startOfSlots(origin)}${limit} ${limit === 1 ? 'run' : 'runs'} at a time, and so many are under way`
export const rateError = (origin: string): string => `the rate limit of ${origin} is used up`
const startOfSlots = (origin: string): string => `${origin} is limited to `

/** Nobody is put aside for longer: things change. */
export const LONGEST_AWAY_MS = 300_000

/** From a shard no more than so many are looked at: whoever else waits in the next minutes may be legion. */
const MAX_LOOKED_AT = 5_000
const BRING_FORWARD = statement(
  'bring_limited_forward',
  `with held as materialized (
     select r.shard, r.job_id, r.nominal_at, r.due_at
     from unnest($1::smallint[]) as s (shard) cross join lateral (
       select r.shard, r.job_id, r.nominal_at, r.due_at, r.attempt from belfry.runs r
       where /*shards r*/ r.shard = s.shard and r.state = ${RUN_STATE.waiting} and r.due_at > to_timestamp($5::float8 / 1000)
         and r.due_at <= to_timestamp(($5::float8 + ${LONGEST_AWAY_MS}) / 1000) and r.tenant_id = $2
       order by r.due_at limit ${MAX_LOOKED_AT}) r
     cross join lateral (
       select from belfry.attempts a
       where a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at and a.finished_at >= r.nominal_at - interval '1 day'
         and a.number = r.attempt and a.failure_class = ${FAILURE_CLASS.rate_limited} and (a.error = $3 or starts_with(a.error, $4)) limit 1) a
     limit $8
   ), picked as (
     select h.*, r.ctid as place_of from held h cross join lateral (
       select r.ctid from belfry.runs r where /*shards r*/ r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at limit 1
       for update skip locked) r
   ), placed as (
     select p.shard, p.place_of, row_number() over (order by p.due_at, p.nominal_at) as place from picked p
   )
   update belfry.runs r set due_at = least(r.due_at, to_timestamp(($6::float8 + p.place * $7::float8) / 1000))
   from placed p where r.ctid = p.place_of and /*shards r*/ r.shard = p.shard and r.state = ${RUN_STATE.waiting}
   returning r.shard, r.due_at`,
)

export interface PutAside {
  tenantId: number
  origin: string
  /** By the number of calls at a time alone, or by the rate too: those have been given their exact times. */
  by: 'slots' | 'any'
  /** In the order in which they are looked through. */
  shards: readonly number[]
  limit: number
}

/** Lets calls that a limit has put aside until after `dueAfter` come one behind the other from `from` on. */
export async function bringLimitedForward(
  db: Queryable,
  { tenantId, origin, by, shards, limit }: PutAside,
  { dueAfter, from, spacingMs }: { dueAfter: Instant; from: Instant; spacingMs: number },
): Promise<{ shard: number; dueAt: Instant }[]> {
  const rows = await db.query<[number, Instant]>(BRING_FORWARD, [
    numbers(shards),
    tenantId,
    by === 'any' ? rateError(origin) : null,
    startOfSlots(origin),
    dueAfter,
    from,
    spacingMs,
    limit,
  ])
  return rows.map(([shard, dueAt]) => ({ shard, dueAt }))
}
