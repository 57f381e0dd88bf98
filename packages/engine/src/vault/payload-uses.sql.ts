import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { payloadIdOf } from './payload-ref.ts'

/** After the last use. */
export const KEPT_MS = 30 * DAY_MS
/** Uses are noted this seldom, so that reading does not write, and so that many jobs may name one payload at once. */
export const NOTED_EVERY_MS = DAY_MS
/** What was last needed before this is over, with the day that a note may be late. */
export const keptSince = (now: Instant): Instant => now - KEPT_MS - NOTED_EVERY_MS
export const REVIEW_BATCH = 500

/**
 * A lock alone would not do against the purge, which may have looked at the uses before this one was written: so a payload that is
 * near its end is changed here, and the purge finds it changed. One that was noted lately is not near its end, and is only read.
 */
const ANNOUNCE = statement(
  'announce_payload_uses',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::smallint[], $5::uuid[], $6::float8[])
       as u (shard, payload_id, tenant_id, job_shard, job_id, needed_at)
   ), wanted as materialized (
     select u.shard, u.payload_id, u.tenant_id, max(u.needed_at) as needed_at from u
     group by u.shard, u.payload_id, u.tenant_id order by u.shard, u.payload_id
   ), known as materialized (
     select w.shard, w.payload_id, w.tenant_id, w.needed_at, p.used_at < to_timestamp((w.needed_at - ${NOTED_EVERY_MS}) / 1000) as is_late
     from wanted w cross join lateral (
       select p.used_at from belfry.payloads p
       where p.shard = w.shard and p.id = w.payload_id and p.tenant_id = w.tenant_id limit 1) p
   ), held as materialized (
     select k.shard, k.payload_id, k.tenant_id, k.needed_at from known k cross join lateral (
       select from belfry.payloads p
       where p.shard = k.shard and p.id = k.payload_id limit 1 for no key update) p
     where k.is_late
   ), noted as (
     update belfry.payloads p set used_at = greatest(p.used_at, to_timestamp(h.needed_at / 1000))
     from held h where p.shard = h.shard and p.id = h.payload_id
   ), there as materialized (
     select k.payload_id, k.tenant_id from known k where not k.is_late
     union all select h.payload_id, h.tenant_id from held h
   ), used as (
     insert into belfry.payload_uses as e (needed_at, payload_id, job_id, shard, job_shard)
     select to_timestamp(u.needed_at / 1000), u.payload_id, u.job_id, u.shard, u.job_shard from u
     where (u.payload_id, u.tenant_id) in (select t.payload_id, t.tenant_id from there t)
     order by u.shard, u.payload_id, u.job_id
     on conflict (shard, payload_id, job_id) do update set needed_at = greatest(e.needed_at, excluded.needed_at)
   )
   select w.payload_id, w.tenant_id from wanted w where (w.payload_id, w.tenant_id) not in (select t.payload_id, t.tenant_id from there t)`,
)

const END = statement(
  'end_payload_uses',
  `delete from belfry.payload_uses e using unnest($1::smallint[], $2::uuid[], $3::uuid[]) as u (shard, payload_id, job_id)
   where e.shard = u.shard and e.payload_id = u.payload_id and e.job_id = u.job_id`,
)

/** One statement, one snapshot: a run that is on its way from one table to another is in one of them. */
const REVIEW = statement(
  'review_payload_uses',
  `with old as materialized (
     select e.shard, e.payload_id, e.job_shard, e.job_id from belfry.payload_uses e where e.needed_at < to_timestamp($1::float8 / 1000)
     order by e.needed_at limit ${REVIEW_BATCH} for update skip locked
   ), judged as materialized (
     select o.shard, o.payload_id, o.job_id,
       case when not exists (select from belfry.payloads p where p.shard = o.shard and p.id = o.payload_id) then null
         when t.due_at < 'infinity' then greatest(t.due_at, to_timestamp($2::float8 / 1000))
         when t.due_at is not null
           or exists (select from belfry.runs r where r.shard = o.job_shard and r.job_id = o.job_id)
           or exists (select from belfry.dead_letters d where d.shard = o.job_shard and d.job_id = o.job_id) then to_timestamp($2::float8 / 1000)
       end as needed_at
     from old o left join lateral (
       select t.due_at from belfry.timers t where t.shard = o.job_shard and t.job_id = o.job_id limit 1) t on true
   ), gone as (
     delete from belfry.payload_uses e using judged j
     where e.shard = j.shard and e.payload_id = j.payload_id and e.job_id = j.job_id and j.needed_at is null
   ), kept as (
     update belfry.payload_uses e set needed_at = j.needed_at from judged j
     where e.shard = j.shard and e.payload_id = j.payload_id and e.job_id = j.job_id and j.needed_at is not null
   ), held as materialized (
     select k.shard, k.payload_id, k.needed_at
     from (select j.shard, j.payload_id, max(j.needed_at) as needed_at from judged j where j.needed_at is not null group by j.shard, j.payload_id) k
     cross join lateral (
       select from belfry.payloads p where p.shard = k.shard and p.id = k.payload_id limit 1 for no key update skip locked) p
   ), noted as (
     update belfry.payloads p set used_at = greatest(p.used_at, h.needed_at) from held h where p.shard = h.shard and p.id = h.payload_id
   )
   select count(*)::int from judged`,
)

/** A job that names a payload, and when it will next need it. */
export interface PayloadUse {
  tenantId: number
  payloadRef: string
  jobId: string
  at: Instant
}

const placeOf = ({ payloadRef, jobId }: Pick<PayloadUse, 'payloadRef' | 'jobId'>) => {
  const payloadId = payloadIdOf(payloadRef)
  return payloadId === null ? null : { shard: shardOfJob(payloadId), payloadId, jobShard: shardOfJob(jobId), jobId }
}

/**
 * Says that jobs need payloads, in the transaction that writes the jobs: from its commit on each payload is kept as long as its job
 * has a future, and 30 days after the last time it was needed. Answers the uses whose tenant has no such payload.
 */
export async function announceUses(tx: Queryable, uses: readonly PayloadUse[]): Promise<PayloadUse[]> {
  const placed = uses.flatMap((use) => {
    const place = placeOf(use)
    return place === null ? [] : [{ ...use, ...place }]
  })
  if (placed.length === 0) return [...uses]
  const missing = await tx.query<[string, number]>(ANNOUNCE, [
    placed.map(({ shard }) => shard),
    placed.map(({ payloadId }) => payloadId),
    placed.map(({ tenantId }) => tenantId),
    placed.map(({ jobShard }) => jobShard),
    placed.map(({ jobId }) => jobId),
    placed.map(({ at }) => at),
  ])
  const isMissing = new Set(missing.map(([payloadId, tenantId]) => `${payloadId}.${tenantId}`))
  return uses.filter(({ payloadRef, tenantId }) => {
    const payloadId = payloadIdOf(payloadRef)
    return payloadId === null || isMissing.has(`${payloadId}.${tenantId}`)
  })
}

/** These jobs need these payloads no more, or never came to be. What was noted stays: nothing expires sooner for it. */
export async function endUses(tx: Queryable, uses: readonly Pick<PayloadUse, 'payloadRef' | 'jobId'>[]): Promise<void> {
  const placed = uses.map(placeOf).filter((place) => place !== null)
  if (placed.length === 0) return
  await tx.query(END, [
    placed.map(({ shard }) => shard),
    placed.map(({ payloadId }) => payloadId),
    placed.map(({ jobId }) => jobId),
  ])
}

/**
 * Looks again at uses whose time is long over: a job with a future needs its payload at its next time, or now if nobody can say
 * when (it is paused, a run of it is alive, or dead and may be redriven); of any other the use ends. Answers how many it looked at.
 */
export async function reviewUses(db: Queryable, now: Instant): Promise<number> {
  return (await db.query<[number]>(REVIEW, [keptSince(now), now]))[0]?.[0] ?? 0
}
