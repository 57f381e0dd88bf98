import { shardOfJob } from '../job/ids.ts'
import { OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** The end of a run that somebody may wait for, as it stands in the outbox. */
export interface End {
  jobId: string
  nominalAt: Instant
  /** Of its last attempt; 0: it had none; `UNDECIDED` or `OPENED`. */
  number: number
  outcome: number
}

/**
 * No end: a time of a job that follows others, which one of those has told of while the timer of another was still at it. That
 * one may skip the time and tell nobody, so it is looked again until the timer has moved on.
 */
export const UNDECIDED = -1
/** No end: a run was opened again, and its children are still to be. */
export const OPENED = -2

/** A nominal time of a job that follows others. */
export type ChainTime = Pick<End, 'jobId' | 'nominalAt'>

/** Held by this transaction: it lies where it does until the commit. */
export interface HeldEnd extends End {
  place: string
}

/**
 * What another node is just delivering is passed over. Whoever looks again goes on behind what he saw last, so that ends which
 * cannot be told yet keep no others from their turn. Ends of one-offs and of recurring jobs are delivered apart.
 */
const lockText = (isOneOff: boolean): string =>
  `select o.job_id, o.nominal_at, o.number, o.outcome, o.ctid from belfry.outbox o
   where o.one_off = ${isOneOff} and (o.shard, o.job_id, o.nominal_at, o.number) > ($2::smallint, $3::uuid, to_timestamp($4::float8 / 1000), $5::int)
   order by o.shard, o.job_id, o.nominal_at, o.number limit $1 for update skip locked`
const LOCK_ONE_OFFS = statement('lock_ends_of_one_offs', lockText(true))
const LOCK_RECURRING = statement('lock_ends_of_recurring', lockText(false))

const DELETE = statement('delete_ends', 'delete from belfry.outbox o where o.ctid = any ($1::tid[])')
const PUT = statement(
  'put_ends',
  `insert into belfry.outbox (nominal_at, job_id, number, shard, outcome, one_off)
   select to_timestamp(u.nominal_at / 1000), u.job_id, u.number, u.shard, u.outcome, u.one_off
   from (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as number,
       unnest($5::smallint[]) as outcome, unnest($6::boolean[]) as one_off) u
   on conflict (shard, job_id, nominal_at, number) do update set outcome = excluded.outcome`,
)
const putText = (number: number, isOneOff: boolean): string =>
  `insert into belfry.outbox (nominal_at, job_id, number, shard, outcome, one_off)
   select to_timestamp(u.nominal_at / 1000), u.job_id, ${number}, u.shard, ${OUTCOME.skipped}, ${isOneOff}
   from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at)
   on conflict do nothing`
const PUT_UNDECIDED = statement('put_undecided', putText(UNDECIDED, false))
const PUT_OPENED = statement('put_opened', putText(OPENED, true))
/** Waits for whoever is delivering one of them. */
const TAKE_BACK = statement(
  'take_back_ends',
  `delete from belfry.outbox o using (
     select u.shard, u.job_id, l.nominal_at, l.number from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at) cross join lateral (
       select o.nominal_at, o.number from belfry.outbox o
       where o.shard = u.shard and o.job_id = u.job_id and o.nominal_at = to_timestamp(u.nominal_at / 1000) for update) l
   ) h where o.shard = h.shard and o.job_id = h.job_id and o.nominal_at = h.nominal_at and o.number = h.number`,
)

type Row = [string, Instant, number, number, string]
const heldOf = ([jobId, nominalAt, number, outcome, place]: Row): HeldEnd => ({
  ...{ jobId, nominalAt, number, outcome, place },
})

const HAS_RECURRING = statement(
  'has_ends_of_recurring',
  'select exists (select from belfry.outbox o where not o.one_off)',
)

/** Without a transaction: mostly there are none. */
export async function hasEndsOfRecurring(db: Queryable): Promise<boolean> {
  return (await db.query<[boolean]>(HAS_RECURRING, []))[0]?.[0] === true
}

/** Where to go on: behind this end; null: from the first on. */
export type Behind = Pick<End, 'jobId' | 'nominalAt' | 'number'> | null

const BEFORE_ALL = [-1, '00000000-0000-0000-0000-000000000000', 0, 0]

const valuesOf = (limit: number, behind: Behind): unknown[] =>
  behind === null
    ? [limit, ...BEFORE_ALL]
    : [limit, shardOfJob(behind.jobId), behind.jobId, behind.nominalAt, behind.number]

export async function lockEndsOfOneOffs(tx: Queryable, limit: number, behind: Behind): Promise<HeldEnd[]> {
  return (await tx.query<Row>(LOCK_ONE_OFFS, valuesOf(limit, behind))).map(heldOf)
}

export async function lockEndsOfRecurring(tx: Queryable, limit: number, behind: Behind): Promise<HeldEnd[]> {
  return (await tx.query<Row>(LOCK_RECURRING, valuesOf(limit, behind))).map(heldOf)
}

export async function deleteEnds(tx: Queryable, ends: readonly HeldEnd[]): Promise<void> {
  if (ends.length > 0) await tx.execute(DELETE, [ends.map(({ place }) => place)])
}

/** Ends of one-offs that happened before somebody began to wait for them. */
export async function putEnds(tx: Queryable, ends: readonly End[]): Promise<void> {
  if (ends.length === 0) return
  const values = [ends.map(({ outcome }) => outcome), ends.map(() => true)]
  await tx.execute(PUT, [...endArrays(ends), ...values])
}

/** It is looked again whether these jobs get runs of these times. */
export async function putUndecided(tx: Queryable, times: readonly ChainTime[]): Promise<void> {
  if (times.length > 0) await tx.execute(PUT_UNDECIDED, runArrays(times))
}

/** The children of these runs are opened by whoever delivers. */
export async function putOpened(tx: Queryable, runs: readonly Pick<End, 'jobId' | 'nominalAt'>[]): Promise<void> {
  await tx.execute(PUT_OPENED, runArrays(runs))
}

/** These runs were opened again before everybody was told of their end. */
export async function takeBackEnds(tx: Queryable, runs: readonly Pick<End, 'jobId' | 'nominalAt'>[]): Promise<void> {
  await tx.execute(TAKE_BACK, runArrays(runs))
}

const runArrays = (runs: readonly Pick<End, 'jobId' | 'nominalAt'>[]): ArrayValues[] => [
  runs.map(({ jobId }) => shardOfJob(jobId)),
  runs.map(({ jobId }) => jobId),
  runs.map(({ nominalAt }) => nominalAt),
]

const endArrays = (ends: readonly End[]): ArrayValues[] => [...runArrays(ends), ends.map(({ number }) => number)]
