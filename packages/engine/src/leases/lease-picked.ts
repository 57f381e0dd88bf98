import { shardOfJob } from '../job/ids.ts'
import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Lease } from './lease.ts'
import { MIN_PACKED, packRuns } from './pack-runs.ts'
import { packedIn, type Receipt } from './receipt.ts'

/**
 * The texts that lease runs which a statement has `picked`, and what such a statement answers. Its holder is $2, the lease lasts from
 * $3 to $4.
 */
export const DEADLINE = 'to_timestamp(($3::float8 + r.timeout_ms) / 1000)'
/** Small things about a run that a receipt does not keep must be as they usually are. */
export const IS_PACKABLE = `r.one_off and r.attempt = 0 and r.cause <> ${CAUSE.trigger} and r.timeout_ms >= $4::float8 - $3::float8`

/** When the run was due: as its row says, or only now. */
const DUE = {
  before: { set: '', value: 'r.due_at' },
  now: {
    set: ', due_at = to_timestamp($3::float8 / 1000)',
    value: 'to_timestamp($3::float8 / 1000)::timestamptz(3) as due_at',
  },
}
/** The ctid is good enough here: a row that changed under the lock is not updated, and stays as it is for the next claim. */
const lease = (due: keyof typeof DUE): string =>
  `update belfry.runs r set state = ${RUN_STATE.leased}, attempt = r.attempt + 1, holder = $2, leased_at = to_timestamp($3::float8 / 1000),
       lease_until = least(to_timestamp($4::float8 / 1000), p.deadline), deadline = p.deadline${DUE[due].set}
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
     ${lease('before')}
     returning ${LEASED}
   ) ${withDefinition('leased')}`

/** What is kept of rows that leave for a receipt. */
const leaving = (dueAt: string): string =>
  `r.shard, r.job_id, r.nominal_at, ${dueAt}, r.tenant_id, r.queue_id, r.job_version, r.timeout_ms, r.priority, r.turn, r.cause, r.has_dependents`
/** Those that have `gone` into one, and those that were `leased` as rows, with further columns of both. */
const goneOrLeased = (...further: string[]): string =>
  withDefinition(
    `(
     select g.shard, g.job_id, g.nominal_at, 1 as attempt, g.tenant_id, g.job_version, 0 as failures, g.timeout_ms, true as one_off, g.priority, g.turn,
       g.due_at, g.cause${further.map((column) => `, g.${column}`).join('')} from gone g
     union all select l.* from leased l)`,
    further.map((column) => `, t.${column}`).join(''),
  )

const PACKABLE = `p.packable and (select count(*) from picked) >= ${MIN_PACKED}`
/**
 * Many first attempts of one-offs leave as rows and stand in a receipt, one per tenant; all others are leased as rows. The places
 * of the former come as one array: a join by place, row by row, costs a tenth more.
 */
export const packPicked = (due: keyof typeof DUE): string => `
   gone as (
     delete from belfry.runs r where r.ctid = any (array(select p.ctid from picked p where ${PACKABLE}))
     returning ${leaving(DUE[due].value)}
   ), receipt as (
     ${packRuns('gone', { holder: '$2', now: '$3', leaseUntil: '$4' }, 'one-offs')}
   ), leased as (
     ${lease(due)} and not (${PACKABLE})
     returning ${LEASED}, r.has_dependents
   ) ${goneOrLeased('has_dependents')}`

export type ClaimedRow = [
  ...[string, Instant, number, number, number, number, number, boolean, number, string, string | null],
  ...[dueAt: Instant | null, cause: number, ownPayload: string | null],
]
/** What a statement answers that packs. */
export type PackedRow = [...ClaimedRow, isAwaited: boolean]

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
      ownPayload: row[13],
      isBackfill: row[12] === CAUSE.backfill,
      packed: null,
      turn,
    },
    priority: row[8],
    turn,
  }
}

/** The same of a run that stands in the receipt, unless it is a row. */
export function claimedInReceipt(
  row: readonly [...PackedRow, ...unknown[]],
  terms: ClaimTerms,
  receipt: Receipt,
): Claimed {
  const claimed = claimedOf(row, terms)
  const [dueAt, cause, isAwaited] = [row[11], row[12], row[14]]
  if (dueAt !== null) claimed.lease.packed = packedIn(receipt, { dueAt, cause, priority: claimed.priority, isAwaited })
  return claimed
}
