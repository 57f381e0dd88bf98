import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { booleans, ids, instants, numbers } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** The end of a run that somebody may wait for, as it stands in the outbox. */
export interface End {
  jobId: string
  nominalAt: Instant
  /** Of its last attempt; 0: it had none. */
  number: number
  outcome: number
}

/** What another node is just delivering is passed over. Ends of one-offs and of recurring jobs are delivered apart. */
const lockText = (isOneOff: boolean): string =>
  `select o.job_id, o.nominal_at, o.number, o.outcome from belfry.outbox o where o.one_off = ${isOneOff}
   order by o.shard, o.job_id, o.nominal_at, o.number limit $1 for update skip locked`
const LOCK_ONE_OFFS = statement('lock_ends_of_one_offs', lockText(true))
const LOCK_RECURRING = statement('lock_ends_of_recurring', lockText(false))

const DELETE = statement(
  'delete_ends',
  `with place as (
     select o.ctid from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[]) as u (shard, job_id, nominal_at, number) cross join lateral (
       select o.ctid from belfry.outbox o where /*shards o*/ o.shard = u.shard and o.job_id = u.job_id
         and o.nominal_at = to_timestamp(u.nominal_at / 1000) and o.number = u.number limit 1) o
   ) delete from belfry.outbox o where /*shards o*/ o.ctid = any (array(select p.ctid from place p))`,
)
const PUT = statement(
  'put_ends',
  `insert into belfry.outbox (nominal_at, job_id, number, shard, outcome, one_off)
   select to_timestamp(u.nominal_at / 1000), u.job_id, u.number, u.shard, u.outcome, u.one_off
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::smallint[], $6::boolean[]) as u (shard, job_id, nominal_at, number, outcome, one_off)
   on conflict (shard, job_id, nominal_at, number) do update set outcome = excluded.outcome`,
)
/** Waits for whoever is delivering one of them. */
const TAKE_BACK = statement(
  'take_back_ends',
  `delete from belfry.outbox o using (
     select u.shard, u.job_id, l.nominal_at, l.number from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at) cross join lateral (
       select o.nominal_at, o.number from belfry.outbox o
       where /*shards o*/ o.shard = u.shard and o.job_id = u.job_id and o.nominal_at = to_timestamp(u.nominal_at / 1000) for update) l
   ) h where o.shard = h.shard and o.job_id = h.job_id and o.nominal_at = h.nominal_at and o.number = h.number`,
)

type Row = [string, Instant, number, number]
const endOf = ([jobId, nominalAt, number, outcome]: Row): End => ({ jobId, nominalAt, number, outcome })

export async function lockEndsOfOneOffs(tx: Queryable, limit: number): Promise<End[]> {
  return (await tx.query<Row>(LOCK_ONE_OFFS, [limit])).map(endOf)
}

export async function lockEndsOfRecurring(tx: Queryable, limit: number): Promise<End[]> {
  return (await tx.query<Row>(LOCK_RECURRING, [limit])).map(endOf)
}

/** Of those that this transaction has locked: everybody has been told. */
export async function deleteEnds(tx: Queryable, ends: readonly End[]): Promise<void> {
  if (ends.length > 0) await tx.execute(DELETE, endArrays(ends))
}

/** Ends of one-offs that happened before somebody began to wait for them. */
export async function putEnds(tx: Queryable, ends: readonly End[]): Promise<void> {
  if (ends.length === 0) return
  const values = [numbers(ends.map(({ outcome }) => outcome)), booleans(ends.map(() => true))]
  await tx.execute(PUT, [...endArrays(ends), ...values])
}

/** These runs were opened again before everybody was told of their end. */
export async function takeBackEnds(tx: Queryable, runs: readonly Pick<End, 'jobId' | 'nominalAt'>[]): Promise<void> {
  await tx.execute(TAKE_BACK, runArrays(runs))
}

const runArrays = (runs: readonly Pick<End, 'jobId' | 'nominalAt'>[]): string[] => [
  numbers(runs.map(({ jobId }) => shardOfJob(jobId))),
  ids(runs.map(({ jobId }) => jobId)),
  instants(runs.map(({ nominalAt }) => nominalAt)),
]

const endArrays = (ends: readonly End[]): string[] => [...runArrays(ends), numbers(ends.map(({ number }) => number))]
