import { shardOfJob } from '../job/ids.ts'
import { CAUSE, DELIVERY, KEYED, LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Lease } from '../leases/lease.ts'
import { MIN_PACKED, packRuns } from '../leases/pack-runs.ts'
import { packedIn, Receipt } from '../leases/receipt.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'

/**
 * The ctid is good enough here: a ready row that changed under the lock is not updated, and stays ready for the next claim.
 */
const LEASE = `update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(to_timestamp($4::float8 / 1000), p.deadline), deadline = p.deadline
     from picked p where r.ctid = p.ctid`
/** What a claim answers of the rows that it leased. */
export const LEASED = `r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, r.job_version, r.failures, r.timeout_ms, r.one_off, r.priority, r.turn,
       null::timestamptz as due_at, r.cause`
export const withDefinition = (taken: string, further = ''): string =>
  `select t.job_id, t.nominal_at, t.attempt, t.tenant_id, t.job_version, t.failures, t.timeout_ms, t.one_off, t.priority, t.turn, s.definition,
     t.due_at, t.cause,
     case when t.cause = ${CAUSE.trigger} then (
       select p.payload from belfry.run_payloads p where p.shard = t.shard and p.job_id = t.job_id and p.nominal_at = t.nominal_at) end${further}
   from ${taken} t left join lateral (
     select s.definition from belfry.specs s where s.shard = t.shard and s.job_id = t.job_id limit 1) s on t.one_off`

export const LEASE_PICKED = `
   leased as (
     ${LEASE}
     returning ${LEASED}
   ) ${withDefinition('leased')}`

/** Small things about a run that a receipt does not keep must be as they usually are. */
const PACKABLE = `p.packable and (select count(*) from picked) >= ${MIN_PACKED}`
/**
 * Many first attempts of one-offs leave as rows and stand in a receipt, one per tenant; all others are leased as rows. The places
 * of the former come as one array: a join by place, row by row, costs a tenth more.
 */
const PACK_PICKED = `
   gone as (
     delete from belfry.runs r where r.ctid = any (array(select p.ctid from picked p where ${PACKABLE}))
     returning r.shard, r.job_id, r.nominal_at, r.due_at, r.tenant_id, r.queue_id, r.job_version, r.timeout_ms, r.priority, r.turn, r.cause
   ), receipt as (
     ${packRuns('gone', { holder: '$2', now: '$3', leaseUntil: '$4' }, 'one-offs')}
   ), leased as (
     ${LEASE} and not (${PACKABLE})
     returning ${LEASED}
   ) ${withDefinition(`(
     select g.shard, g.job_id, g.nominal_at, 1 as attempt, g.tenant_id, g.job_version, 0 as failures, g.timeout_ms, true as one_off, g.priority, g.turn,
       g.due_at, g.cause from gone g
     union all select l.* from leased l)`)}`

export const PICKED = `r.ctid, to_timestamp(($3::float8 + r.timeout_ms) / 1000) as deadline,
       r.one_off and r.attempt = 0 and r.cause <> ${CAUSE.trigger} and not r.has_dependents and r.timeout_ms >= $4::float8 - $3::float8 as packable`
const TAKE = { at_least_once: PACK_PICKED, at_most_once: LEASE_PICKED }

/**
 * Whoever does not hold the queue's limit takes nothing from a queue that has one, whatever its node knows: one look-up for the
 * whole statement.
 */
const HAS_NO_LIMIT = `not exists (select from belfry.limits l where l.kind = ${LIMIT_KIND.queue} and l.key = $1)`
const GUARD = { unlimited: `and ${HAS_NO_LIMIT}`, limited: '' }

const IS_OF = {
  at_least_once: `= ${DELIVERY.at_least_once}`,
  at_most_once: `= ${DELIVERY.at_most_once}`,
  keyed: `>= ${KEYED}`,
}

/** In order of turn, from the watermark on; rows that somebody else holds are passed over. One priority level. */
export const pickLevel = (kind: keyof typeof IS_OF, columns: string, queue: keyof typeof GUARD): string =>
  `with picked as (
     select ${columns}
     from belfry.runs r
     where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = $5 and r.turn >= $6 ${GUARD[queue]}
     order by r.turn limit $7 for update skip locked
   )`

/** The same over several levels: first where the merged order ends, then no row behind that is touched. */
export const pickLevels = (kind: keyof typeof IS_OF, columns: string, queue: keyof typeof GUARD): string =>
  `with level as (
     select * from unnest($5::smallint[], $6::bigint[]) as level (priority, watermark) where true ${GUARD[queue]}
   ), horizon as (
     select max(first.turn) as turn from (
       select head.turn from level cross join lateral (
         select r.turn from belfry.runs r
         where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = level.priority
           and r.turn >= level.watermark
         order by r.turn limit $7) head
       order by head.turn limit $7) first
   ), picked as (
     select head.*
     from horizon cross join level cross join lateral (
       select ${columns}
       from belfry.runs r
       where r.queue_id = $1 and r.state = ${RUN_STATE.ready} and r.delivery ${IS_OF[kind]} and r.priority = level.priority
         and r.turn >= level.watermark and r.turn <= horizon.turn
       order by r.turn limit $7 for update skip locked) head
   )`

/** Each kind of delivery has an index of its own, which the planner takes only for a literal. */
const CLAIM = {
  at_least_once: statement(
    'claim_at_least_once',
    `${pickLevel('at_least_once', PICKED, 'unlimited')}, ${TAKE.at_least_once}`,
  ),
  at_most_once: statement(
    'claim_at_most_once',
    `${pickLevel('at_most_once', PICKED, 'unlimited')}, ${TAKE.at_most_once}`,
  ),
}
const CLAIM_LEVELS = {
  at_least_once: statement(
    'claim_levels_at_least_once',
    `${pickLevels('at_least_once', PICKED, 'unlimited')}, ${TAKE.at_least_once}`,
  ),
  at_most_once: statement(
    'claim_levels_at_most_once',
    `${pickLevels('at_most_once', PICKED, 'unlimited')}, ${TAKE.at_most_once}`,
  ),
}

export type ClaimedRow = [
  ...[string, Instant, number, number, number, number, number, boolean, number, string, string | null],
  ...[dueAt: Instant | null, cause: number, ownPayload: string | null],
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
  const { queueId, holder, now, leaseUntil, levels, limit, delivery } = claim
  const rows = await db.query<ClaimedRow>(
    ...forLevels(
      levels,
      { one: CLAIM[delivery], several: CLAIM_LEVELS[delivery] },
      [queueId, holder, now, leaseUntil],
      limit,
    ),
  )
  const receipt = new Receipt(holder)
  return rows.map((row) => {
    const claimed = claimedOf(row, { queueId, holder, now, leaseUntil, atMostOnce: delivery === 'at_most_once' })
    const [dueAt, cause] = [row[11], row[12]]
    if (dueAt !== null) claimed.lease.packed = packedIn(receipt, { dueAt, cause, priority: claimed.priority })
    return claimed
  })
}

/** One level is claimed from by the simpler statement. */
export function forLevels(
  levels: readonly Level[],
  statements: { one: Statement; several: Statement },
  terms: readonly unknown[],
  limit: number,
): [Statement, unknown[]] {
  const [only] = levels
  if (levels.length === 1 && only) return [statements.one, [...terms, only.priority, only.watermark, limit]]
  const priorities = levels.map((level) => level.priority)
  const watermarks = levels.map((level) => level.watermark)
  return [statements.several, [...terms, priorities, watermarks, limit]]
}

export function claimedOf(
  row: readonly [...ClaimedRow, ...unknown[]],
  terms: { queueId: number; holder: string; now: Instant; leaseUntil: Instant; atMostOnce: boolean },
): Claimed {
  const { queueId, holder, now, leaseUntil, atMostOnce } = terms
  const turn = Number(row[9])
  return {
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
      ownPayload: row[13],
      isBackfill: row[12] === CAUSE.backfill,
      packed: null,
      turn,
    },
    priority: row[8],
    turn,
  }
}
