import { DELIVERY, RUN_STATE } from '../job/states.ts'
import type { Lease } from '../leases/lease.ts'
import type { Instant } from '../runtime/clock.ts'
import { numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const LEASE_PICKED = `
   leased as (
     update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(to_timestamp($4::float8 / 1000), p.deadline), deadline = p.deadline
     from picked p where r.shard = p.shard and r.job_id = p.job_id and r.nominal_at = p.nominal_at
     returning r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, r.job_version, r.failures, r.due_at, r.timeout_ms, r.delivery, r.one_off,
       r.priority, r.turn
   )
   select l.shard, l.job_id, l.nominal_at, l.attempt, l.tenant_id, l.job_version, l.failures, l.due_at, l.timeout_ms, l.delivery, l.one_off,
     l.priority, l.turn, s.definition
   from leased l left join lateral (
     select s.definition from belfry.specs s where s.shard = l.shard and s.job_id = l.job_id limit 1) s on l.one_off`

/** In order of turn, from the watermark on; rows that somebody else holds are passed over. One priority level. */
const CLAIM = statement(
  'claim_runs',
  `with picked as (
     select r.shard, r.job_id, r.nominal_at, to_timestamp(($3::float8 + r.timeout_ms) / 1000) as deadline
     from belfry.runs r
     where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.priority = $5 and r.turn >= $6 and r.delivery = $8
     order by r.turn limit $7 for update skip locked
   ), ${LEASE_PICKED}`,
)

/** The same over several levels: first where the merged order ends, then no row behind that is touched. */
const CLAIM_LEVELS = statement(
  'claim_runs_of_levels',
  `with level as (
     select * from unnest($5::smallint[], $6::bigint[]) as level (priority, watermark)
   ), horizon as (
     select max(first.turn) as turn from (
       select head.turn from level cross join lateral (
         select r.turn from belfry.runs r
         where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.priority = level.priority and r.turn >= level.watermark and r.delivery = $8
         order by r.turn limit $7) head
       order by head.turn limit $7) first
   ), picked as (
     select head.shard, head.job_id, head.nominal_at, head.deadline
     from horizon cross join level cross join lateral (
       select r.shard, r.job_id, r.nominal_at, to_timestamp(($3::float8 + r.timeout_ms) / 1000) as deadline
       from belfry.runs r
       where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.priority = level.priority and r.turn >= level.watermark and r.turn <= horizon.turn
         and r.delivery = $8
       order by r.turn limit $7 for update skip locked) head
   ), ${LEASE_PICKED}`,
)

type Row = [
  number,
  string,
  Instant,
  number,
  number,
  number,
  number,
  Instant,
  number,
  number,
  boolean,
  number,
  string,
  string | null,
]

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
  const { queueId, holder, now, leaseUntil, levels, limit } = claim
  const delivery = DELIVERY[claim.delivery]
  const [only] = levels
  const rows =
    levels.length === 1 && only
      ? await db.query<Row>(CLAIM, [queueId, holder, now, leaseUntil, only.priority, only.watermark, limit, delivery])
      : await db.query<Row>(CLAIM_LEVELS, [
          queueId,
          holder,
          now,
          leaseUntil,
          numbers(levels.map((level) => level.priority)),
          numbers(levels.map((level) => level.watermark)),
          limit,
          delivery,
        ])
  return rows.map((row) => ({
    lease: {
      shard: row[0],
      jobId: row[1],
      nominalAt: row[2],
      attempt: row[3],
      holder,
      tenantId: row[4],
      queueId,
      jobVersion: row[5],
      failures: row[6],
      dueAt: row[7],
      leasedAt: now,
      leaseUntil: Math.min(leaseUntil, now + row[8]),
      deadline: now + row[8],
      atMostOnce: row[9] === DELIVERY.at_most_once,
      oneOff: row[10],
      definition: row[13],
    },
    priority: row[11],
    turn: Number(row[12]),
  }))
}
