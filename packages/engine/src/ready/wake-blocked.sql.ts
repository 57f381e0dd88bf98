import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Database, Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Floors, floorsOf, turnAgain } from './turn-again.sql.ts'
import { NOTHING, type Woken } from './woken.ts'

/**
 * The job's lock: its timer, or where that is gone the row that defines it. Locked ones are passed over. A job of which
 * nothing is left needs no lock: no transaction makes runs of it any more. What looks for definitions comes before what locks others
 * ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
const LOCK = statement(
  'lock_jobs_to_wake',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
   ), timer as (
     select u.job_id from u cross join lateral (
       select from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id limit 1 for update skip locked) t
   ), past as materialized (
     select u.shard, u.job_id, j.id is not null as is_recurring, s.job_id is not null as is_one_off from u
     left join lateral (select j.id from belfry.jobs j where j.shard = u.shard and j.id = u.job_id limit 1) j on true
     left join lateral (select s.job_id from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s on true
     where not exists (select from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id offset 0)
   ), recurring as (
     select p.job_id from past p cross join lateral (
       select from belfry.jobs j where j.shard = p.shard and j.id = p.job_id limit 1 for update skip locked) j where p.is_recurring
   ), one_off as (
     select p.job_id from past p cross join lateral (
       select from belfry.specs s where s.shard = p.shard and s.job_id = p.job_id limit 1 for update skip locked) s where p.is_one_off
   )
   select p.job_id from past p where not p.is_recurring and not p.is_one_off union all select o.job_id from one_off o
   union all select r.job_id from recurring r union all select t.job_id from timer t`,
)
/**
 * What is alive and does not wait itself keeps the others waiting. The ctid is good enough: a run that
 * changed under the lock stays blocked, and the sweep finds it. All have been looked at, by the sort, before the first is locked
 * ([0026](../../../../docs/decisions/0026-partitions-and-locks.md)).
 */
const WAKE = statement(
  'wake_blocked_runs',
  `with u as materialized (
     select u.shard, u.job_id from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
     where exists (select from belfry.runs r where r.shard = u.shard and r.job_id = u.job_id and r.state = ${RUN_STATE.blocked} offset 0)
   ), free as materialized (
     select u.shard, u.job_id from u
     where not exists (select from belfry.runs r where r.shard = u.shard and r.job_id = u.job_id and r.state <> ${RUN_STATE.blocked} offset 0)
   ), next as (
     select b.ctid from (select f.shard, f.job_id from free f order by f.shard, f.job_id offset 0) f cross join lateral (
       select r.ctid from belfry.runs r
       where r.shard = f.shard and r.job_id = f.job_id and r.state = ${RUN_STATE.blocked}
       order by r.nominal_at limit 1 for update skip locked) b
   )
   update belfry.runs r set
     state = case when r.due_at > to_timestamp($3::float8 / 1000) then ${RUN_STATE.waiting} else ${RUN_STATE.ready} end,
     due_at = greatest(r.due_at, to_timestamp($3::float8 / 1000)),
     turn = ${turnAgain({ now: '$3', queueIds: '$4', starts: '$5' })}
   where r.ctid = any (array(select n.ctid from next n))
   returning r.job_id, r.state, r.due_at, r.queue_id, r.priority, r.delivery, r.turn`,
)

interface JobPlace {
  shard: number
  jobId: string
}

/**
 * The oldest blocked run of each job becomes ready if no other run of the job is alive but such that are blocked as well; one that
 * was opened again for later waits for that. Two transactions that do this at once never wake two: each holds the job before it
 * looks, and looks in a statement of its own, which sees what the other has committed.
 */
export async function wakeBlocked(
  db: Database,
  jobIds: readonly string[],
  at: { now: Instant; floors: Floors },
): Promise<Woken<string>> {
  const inOrder = jobIds.map((jobId): JobPlace => ({ shard: shardOfJob(jobId), jobId })).sort(byLockOrder)
  return db.transaction(async (tx) => {
    const locked = await lockJobs(tx, inOrder)
    const held = jobIds.filter((jobId) => !locked.has(jobId))
    const jobs = inOrder.filter(({ jobId }) => locked.has(jobId))
    return { ...(jobs.length === 0 ? NOTHING : await wakeNext(tx, jobs, at)), held }
  })
}

/** In the order in which every batch takes its rows; answers those that were free. */
export async function lockJobs(tx: Queryable, jobs: readonly JobPlace[]): Promise<Set<string>> {
  return new Set((await tx.query<[string]>(LOCK, arraysOf(jobs))).flat())
}

/** Of jobs that this transaction holds. */
export async function wakeNext(
  tx: Queryable,
  jobs: readonly JobPlace[],
  at: { now: Instant; floors: Floors },
): Promise<Woken<string>> {
  const rows = await tx.query<Row>(WAKE, [...arraysOf(jobs), at.now, ...floorsOf(at.floors)])
  return {
    ...NOTHING,
    ready: rows.filter(isReady).map(([, , , queueId, priority, delivery, turn]) => ({
      ...{ queueId, priority, delivery },
      turn: Number(turn),
    })),
    waiting: rows.filter((row) => !isReady(row)).map(([jobId, , dueAt]) => ({ shard: shardOfJob(jobId), dueAt })),
  }
}

type Row = [jobId: string, state: number, dueAt: Instant, queueId: number, priority: number, delivery: number, string]
const isReady = ([, state]: Row): boolean => state === RUN_STATE.ready

const arraysOf = (jobs: readonly JobPlace[]): ArrayValues[] => [
  jobs.map((job) => job.shard),
  jobs.map((job) => job.jobId),
]

const byLockOrder = (a: JobPlace, b: JobPlace): number => a.shard - b.shard || (a.jobId < b.jobId ? -1 : 1)
