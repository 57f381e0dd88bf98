import { RUN_STATE } from '../job/states.ts'

/** How a statement writes what it looks for among the runs `r` that wait, and their last attempts `a`. */
interface PutAsideTexts {
  /** When they would come by themselves. */
  due: string
  /** Why they wait stands in the last attempt. */
  why: string
  limit: string
  /** How many of a shard are looked at: whoever else waits may be legion. */
  lookedAt?: number
}

/**
 * The texts that find runs of the tenant `$2`, in the shards `$1`, that somebody put aside, and number them as `placed` in the order
 * in which they would come by themselves. One that somebody else holds is left to him. The sort is there so that history has been
 * looked at before the first is locked ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
export const placePutAside = ({ due, why, limit, lookedAt }: PutAsideTexts): string =>
  `held as materialized (
     select r.shard, r.job_id, r.nominal_at, r.due_at
     from unnest($1::smallint[]) as s (shard) cross join lateral (
       select r.shard, r.job_id, r.nominal_at, r.due_at, r.attempt from belfry.runs r
       where r.shard = s.shard and r.state = ${RUN_STATE.waiting} and ${due} and r.tenant_id = $2
       order by r.due_at${lookedAt === undefined ? '' : ` limit ${lookedAt}`}) r
     cross join lateral (
       select from belfry.attempts a
       where a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at and a.finished_at >= r.nominal_at - interval '1 day'
         and a.number = r.attempt and ${why} limit 1) a
     limit ${limit}
   ), picked as (
     select h.*, r.ctid as place_of from (select * from held order by shard, job_id, nominal_at offset 0) h cross join lateral (
       select r.ctid from belfry.runs r where r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at limit 1
       for update skip locked) r
   ), placed as (
     select p.shard, p.place_of, row_number() over (order by p.due_at, p.nominal_at) as place from picked p
   )`

/** Gives those that were placed their new time. */
export const setDueOfPlaced = (dueAt: string): string =>
  `update belfry.runs r set due_at = ${dueAt}
   from placed p where r.ctid = p.place_of and r.shard = p.shard and r.state = ${RUN_STATE.waiting}
   returning r.shard, r.due_at`
