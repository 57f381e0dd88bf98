import { shardOfJob } from '../job/ids.ts'
import { DELIVERY, RUN_STATE } from '../job/states.ts'
import type { Lease } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'
import { numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * The ctid is good enough here: a ready row that changed under the lock is not updated, and stays ready for the next claim.
 */
const LEASE_PICKED = `
   leased as (
     update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(to_timestamp($4::float8 / 1000), p.deadline), deadline = p.deadline
     from picked p where r.ctid = p.ctid
     returning r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, r.job_version, r.failures, r.timeout_ms, r.one_off, r.priority, r.turn
   )
   select l.job_id, l.nominal_at, l.attempt, l.tenant_id, l.job_version, l.failures, l.timeout_ms, l.one_off, l.priority, l.turn, s.definition
   from leased l left join lateral (
     select s.definition from belfry.specs s where s.shard = l.shard and s.job_id = l.job_id limit 1) s on l.one_off`

/** In order of turn, from the watermark on; rows that somebody else holds are passed over. One priority level. */
const claimText = (delivery: Delivery): string =>
  `with picked as (
     select r.ctid, to_timestamp(($3::float8 + r.timeout_ms) / 1000) as deadline
     from belfry.runs r
     where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery = ${DELIVERY[delivery]} and r.priority = $5 and r.turn >= $6
     order by r.turn limit $7 for update skip locked
   ), ${LEASE_PICKED}`

/** The same over several levels: first where the merged order ends, then no row behind that is touched. */
const claimLevelsText = (delivery: Delivery): string =>
  `with level as (
     select * from unnest($5::smallint[], $6::bigint[]) as level (priority, watermark)
   ), horizon as (
     select max(first.turn) as turn from (
       select head.turn from level cross join lateral (
         select r.turn from belfry.runs r
         where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery = ${DELIVERY[delivery]} and r.priority = level.priority
           and r.turn >= level.watermark
         order by r.turn limit $7) head
       order by head.turn limit $7) first
   ), picked as (
     select head.ctid, head.deadline
     from horizon cross join level cross join lateral (
       select r.ctid, to_timestamp(($3::float8 + r.timeout_ms) / 1000) as deadline
       from belfry.runs r
       where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery = ${DELIVERY[delivery]} and r.priority = level.priority
         and r.turn >= level.watermark and r.turn <= horizon.turn
       order by r.turn limit $7 for update skip locked) head
   ), ${LEASE_PICKED}`

/** Each kind of delivery has an index of its own, which the planner takes only for a literal. */
const CLAIM = {
  at_least_once: statement('claim_at_least_once', claimText('at_least_once')),
  at_most_once: statement('claim_at_most_once', claimText('at_most_once')),
}
const CLAIM_LEVELS = {
  at_least_once: statement('claim_levels_at_least_once', claimLevelsText('at_least_once')),
  at_most_once: statement('claim_levels_at_most_once', claimLevelsText('at_most_once')),
}

type Row = [string, Instant, number, number, number, number, number, boolean, number, string, string | null]

/** Runs that may be performed at most once are claimed apart: they are never leased ahead of a free slot. */
export type Delivery = keyof typeof DELIVERY

export interface Level {
  priority: number
  /** No ready run of this level is known to have a smaller turn. */
  watermark: number
}

export interface Claim {
  queueId: number
  holder: string
  now: Instant
  leaseUntil: Instant
  levels: readonly Level[]
  limit: number
  delivery: Delivery
}

export interface Claimed {
  lease: Lease
  priority: number
  turn: number
}

export async function claimRuns(db: Queryable, claim: Claim): Promise<Claimed[]> {
  const { queueId, holder, now, leaseUntil, levels, limit, delivery } = claim
  const [only] = levels
  const rows =
    levels.length === 1 && only
      ? await db.query<Row>(CLAIM[delivery], [queueId, holder, now, leaseUntil, only.priority, only.watermark, limit])
      : await db.query<Row>(CLAIM_LEVELS[delivery], [
          queueId,
          holder,
          now,
          leaseUntil,
          numbers(levels.map((level) => level.priority)),
          numbers(levels.map((level) => level.watermark)),
          limit,
        ])
  const atMostOnce = delivery === 'at_most_once'
  return rows.map((row) => ({
    lease: {
      shard: shardOfJob(row[0]),
      jobId: row[0],
      nominalAt: row[1],
      attempt: row[2],
      holder,
      tenantId: row[3],
      queueId,
      jobVersion: row[4],
      failures: row[5],
      leasedAt: now,
      leaseUntil: Math.min(leaseUntil, now + row[6]),
      deadline: now + row[6],
      atMostOnce,
      oneOff: row[7],
      definition: row[10],
    },
    priority: row[8],
    turn: Number(row[9]),
  }))
}
