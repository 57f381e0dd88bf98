import { shardOfJob } from '../job/ids.ts'
import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Lease } from './lease.ts'

/**
 * The texts that lease runs which a statement has `picked`, and what such a statement answers. Its holder is $2, the lease lasts from
 * $3 to $4.
 */
export const DEADLINE = 'to_timestamp(($3::float8 + r.timeout_ms) / 1000)'
/** The ctid is good enough here: a row that changed under the lock is not updated, and stays as it is for the next claim. */
const LEASE = `update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(to_timestamp($4::float8 / 1000), p.deadline), deadline = p.deadline
     from picked p where r.ctid = p.ctid`
/** What a claim answers of the rows that it leased. */
export const LEASED = `r.shard, r.job_id, r.nominal_at, r.attempt, r.tenant_id, r.job_version, r.failures, r.timeout_ms, r.one_off, r.priority, r.turn,
       r.cause`
export const withDefinition = (taken: string, further = ''): string =>
  `select t.job_id, t.nominal_at, t.attempt, t.tenant_id, t.job_version, t.failures, t.timeout_ms, t.one_off, t.priority, t.turn, s.definition,
     t.cause,
     case when t.cause = ${CAUSE.trigger} then (
       select p.payload from belfry.run_payloads p where p.shard = t.shard and p.job_id = t.job_id and p.nominal_at = t.nominal_at) end${further}
   from ${taken} t left join lateral (
     select s.definition from belfry.specs s where s.shard = t.shard and s.job_id = t.job_id limit 1) s on t.one_off`

export const LEASE_PICKED = `
   leased as (
     ${LEASE}
     returning ${LEASED}
   ) ${withDefinition('leased')}`

export type ClaimedRow = [
  ...[string, Instant, number, number, number, number, number, boolean, number, string, string | null],
  ...[cause: number, ownPayload: string | null],
]

export interface Claimed {
  lease: Lease
  priority: number
  turn: number
}

export interface ClaimTerms {
  queueId: number
  holder: string
  now: Instant
  leaseUntil: Instant
  atMostOnce: boolean
}

export function claimedOf(row: readonly [...ClaimedRow, ...unknown[]], terms: ClaimTerms): Claimed {
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
      ownPayload: row[12],
      isBackfill: row[11] === CAUSE.backfill,
      turn,
    },
    priority: row[8],
    turn,
  }
}
