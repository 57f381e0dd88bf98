import { BelfryError } from '../errors.ts'
import { jobIdLowerBound } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

export const KEY_KIND = { idempotency: 0, name: 1, unique: 2 } as const

/**
 * In order of their primary key, before anything else: two batches with the same keys in opposite order cannot deadlock. Keys that
 * are held by others are locked as well. A unique key does not expire: that instant only says when to look whether it is needed.
 */
const TAKE = statement(
  'take_keys',
  `insert into belfry.keys as k (expires_at, fingerprint, job_id, tenant_id, shard, kind, key)
   select to_timestamp(u.expires_at / 1000), u.fingerprint, u.job_id, u.tenant_id, u.shard, u.kind, u.key
   from unnest($1::smallint[], $2::int[], $3::smallint[], $4::text[], $5::uuid[], $6::bigint[], $7::float8[])
     as u (shard, tenant_id, kind, key, job_id, fingerprint, expires_at)
   order by u.shard, u.tenant_id, u.kind, u.key
   on conflict (shard, tenant_id, kind, key) do update set expires_at = excluded.expires_at, fingerprint = excluded.fingerprint, job_id = excluded.job_id
     where k.expires_at <= to_timestamp($8::float8 / 1000) and k.kind <> ${KEY_KIND.unique}
   returning shard, tenant_id, kind, key`,
)
const READ = statement(
  'read_keys',
  `select k.shard, k.tenant_id, k.kind, k.key, k.job_id, k.fingerprint, array_to_string(k.others, ',')
   from unnest($1::smallint[], $2::int[], $3::smallint[], $4::text[]) as u (shard, tenant_id, kind, key) cross join lateral (
     select * from belfry.keys k
     where k.shard = u.shard and k.tenant_id = u.tenant_id and k.kind = u.kind and k.key = u.key limit 1) k`,
)
/** The shard that stands in an id. */
export const shardIn = (jobId: string): string => `('x' || substr(${jobId}::text, 16, 3))::bit(12)::int::smallint`
/**
 * An idempotency key lasts no longer than what is known of its job: one that was dropped with its history is the answer to no request.
 * A younger job that is gone was deleted, and stays the answer. `before` is the smallest id of the days of history. `offset 0` keeps
 * the planner from reading a whole table once instead of looking up one job after the other.
 */
export const isForgotten = (jobId: string, before: string): string =>
  `${jobId} < ${before}::uuid
       and not exists (select from belfry.jobs j where j.shard = ${shardIn(jobId)} and j.id = ${jobId} offset 0)
       and not exists (select from belfry.specs s where s.shard = ${shardIn(jobId)} and s.job_id = ${jobId} offset 0)`

/** In a statement that locks nothing ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)). */
const FORGOTTEN = statement(
  'keys_of_forgotten_jobs',
  `select k.shard, k.tenant_id, k.kind, k.key, k.job_id
   from unnest($1::smallint[], $2::int[], $3::smallint[], $4::text[]) as u (shard, tenant_id, kind, key) cross join lateral (
     select * from belfry.keys k
     where k.shard = u.shard and k.tenant_id = u.tenant_id and k.kind = u.kind and k.key = u.key limit 1) k
   where ${isForgotten('k.job_id', '$5')}`,
)
const DELETE = statement(
  'delete_keys',
  `delete from belfry.keys k using (
     select u.shard, k.ctid as place
     from unnest($1::smallint[], $2::int[], $3::smallint[], $4::text[], $5::uuid[]) as u (shard, tenant_id, kind, key, job_id) cross join lateral (
       select k.ctid from belfry.keys k
       where k.shard = u.shard and k.tenant_id = u.tenant_id and k.kind = u.kind and k.key = u.key and k.job_id = u.job_id limit 1) k
   ) u
   where k.ctid = u.place and k.shard = u.shard`,
)
/** A name is freed lazily: whoever meets the record of a job that has no future takes it over. */
const TAKE_OVER = statement(
  'take_over_name',
  `update belfry.keys k set job_id = $5
   where k.shard = $1 and k.tenant_id = $2 and k.kind = ${KEY_KIND.name} and k.key = $3 and k.job_id = $4
     and not exists (select from belfry.jobs j where j.shard = $6 and j.id = $4 and j.status < 2)
     and not exists (select from belfry.timers t where t.shard = $6 and t.job_id = $4)
     and not exists (select from belfry.runs r where r.shard = $6 and r.job_id = $4)`,
)
const POINT = statement(
  'point_keys',
  `update belfry.keys k set job_id = u.job_id
   from (
     select u.shard, u.job_id, k.ctid as place
     from unnest($1::smallint[], $2::int[], $3::smallint[], $4::text[], $5::uuid[]) as u (shard, tenant_id, kind, key, job_id) cross join lateral (
       select k.ctid from belfry.keys k
       where k.shard = u.shard and k.tenant_id = u.tenant_id and k.kind = u.kind and k.key = u.key limit 1 for update) k
   ) u
   where k.ctid = u.place and k.shard = u.shard`,
)
const FREE = statement(
  'free_names',
  `delete from belfry.keys k where k.shard = $1 and k.tenant_id = $2 and k.kind = ${KEY_KIND.name} and k.key = $3 and k.job_id = $4 returning k.key`,
)
const HOLDER_OF = statement(
  'name_holder',
  `select k.job_id from belfry.keys k where k.shard = $1 and k.tenant_id = $2 and k.kind = ${KEY_KIND.name} and k.key = $3`,
)

export interface Key {
  shard: number
  tenantId: number
  kind: number
  key: string
  jobId: string
  /** Of idempotency keys. */
  fingerprint: string | null
  expiresAt: Instant
}

export const keyText = (key: Pick<Key, 'shard' | 'tenantId' | 'kind' | 'key'>): string =>
  `${key.shard}.${key.tenantId}.${key.kind}.${key.key}`

const arraysOf = (keys: readonly Key[]): ArrayValues[] => [
  keys.map((key) => key.shard),
  keys.map((key) => key.tenantId),
  keys.map((key) => key.kind),
  keys.map((key) => key.key),
]

/** Jobs that were created earlier may have been dropped with their history. */
export const forgottenBefore = (now: Instant, historyDays: number): Instant => Math.max(0, now - historyDays * DAY_MS)

type KeyRow = [shard: number, tenantId: number, kind: number, key: string]

/** Answers the keys that are now ours. Keys are unique within the batch. */
export async function takeKeys(tx: Queryable, keys: readonly Key[], now: Instant): Promise<Set<string>> {
  const rows = await tx.query<KeyRow>(TAKE, [
    ...arraysOf(keys),
    keys.map((key) => key.jobId),
    keys.map((key) => key.fingerprint),
    keys.map((key) => key.expiresAt),
    now,
  ])
  return new Set(rows.map(([shard, tenantId, kind, key]) => keyText({ shard, tenantId, kind, key })))
}

/** Answers the idempotency keys that are free now; their rows are locked by the try to take them. */
export async function freeForgotten(tx: Queryable, keys: readonly Key[], before: Instant): Promise<Key[]> {
  const rows = await tx.query<[...KeyRow, jobId: string]>(FORGOTTEN, [...arraysOf(keys), jobIdLowerBound(before)])
  if (rows.length === 0) return []
  const holders = new Map(
    rows.map(([shard, tenantId, kind, key, jobId]) => [keyText({ shard, tenantId, kind, key }), jobId]),
  )
  const forgotten = keys.filter((key) => holders.has(keyText(key)))
  await tx.execute(DELETE, [...arraysOf(forgotten), forgotten.map((key) => holders.get(keyText(key)) as string)])
  return forgotten
}

/** Who has a key. */
export interface KeyHolder {
  jobId: string
  fingerprint: string | null
  /** Of a unique key: who had it before, newest first, and may still be there. */
  others: string[]
}

export async function readKeys(tx: Queryable, keys: readonly Key[]): Promise<Map<string, KeyHolder>> {
  type Row = [number, number, number, string, string, string | null, string | null]
  const rows = await tx.query<Row>(READ, arraysOf(keys))
  return new Map(
    rows.map(([shard, tenantId, kind, key, jobId, fingerprint, others]) => [
      keyText({ shard, tenantId, kind, key }),
      { jobId, fingerprint, others: others ? others.split(',') : [] },
    ]),
  )
}

/** The keys are theirs already, and shall lead to other jobs. */
export async function pointKeys(tx: Queryable, keys: readonly Key[]): Promise<void> {
  await tx.execute(POINT, [...arraysOf(keys), keys.map((key) => key.jobId)])
}

/** The job that has a name, though perhaps no future any more. */
export async function holderOfName(
  db: Queryable,
  key: Pick<Key, 'shard' | 'tenantId' | 'key'>,
): Promise<string | null> {
  const [row] = await db.query<[string]>(HOLDER_OF, [key.shard, key.tenantId, key.key])
  return row?.[0] ?? null
}

export async function takeOverName(
  tx: Queryable,
  key: Key,
  heldBy: { jobId: string; shard: number },
): Promise<boolean> {
  await tx.query(TAKE_OVER, [key.shard, key.tenantId, key.key, heldBy.jobId, key.jobId, heldBy.shard])
  return (await holderOfName(tx, key)) === key.jobId
}

export async function freeName(tx: Queryable, key: Pick<Key, 'shard' | 'tenantId' | 'key' | 'jobId'>): Promise<void> {
  await tx.query(FREE, [key.shard, key.tenantId, key.key, key.jobId])
}

/** Somebody else's transaction holds what is needed. */
export const stillUnderWay = (cause: unknown): BelfryError =>
  new BelfryError('in_progress', 'a request with the same key is still under way: try again', { cause })
