import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * Where the parents of a job are with a nominal time: whether their run of it is alive, whether it comes next, and how it ended.
 */
const PARENTS = statement(
  'look_at_parents_of_chain',
  `select e.parent, e.wanted, e.on_failure,
     exists (select from belfry.runs r where r.shard = e.shard and r.job_id = e.parent and r.nominal_at = to_timestamp($2::float8 / 1000)),
     coalesce((select t.nominal_at = to_timestamp($2::float8 / 1000) and t.due_at < 'infinity' from belfry.timers t
       where t.shard = e.shard and t.job_id = e.parent), false),
     (select a.outcome from belfry.attempts a
      where a.shard = e.shard and a.job_id = e.parent and a.nominal_at = to_timestamp($2::float8 / 1000)
        and a.finished_at >= to_timestamp($2::float8 / 1000) - interval '1 day' and a.final order by a.finished_at desc limit 1)
   from belfry.edges e where e.child = $1 and e.tenant_id > 0`,
)
/** Which of these jobs follow one whose timer is still at this nominal time. */
const COMING = statement(
  'look_at_timers_of_parents',
  `select u.n::int from unnest($1::uuid[], $2::float8[]) with ordinality as u (child, nominal_at, n) cross join lateral (
     select from belfry.edges e cross join lateral (
       select t.nominal_at, t.due_at from belfry.timers t where t.shard = e.shard and t.job_id = e.parent limit 1) t
     where e.child = u.child and e.tenant_id > 0 and t.nominal_at = to_timestamp(u.nominal_at / 1000) and t.due_at < 'infinity' limit 1) e`,
)
const HAD = statement(
  'chain_had_run',
  `select exists (select from belfry.attempts a
       where a.shard = $1 and a.job_id = $2 and a.nominal_at = to_timestamp($3::float8 / 1000) and a.finished_at >= to_timestamp($3::float8 / 1000) - interval '1 day')
     or exists (select from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000))`,
)
const SKIPPED = statement(
  'chain_was_skipped',
  `select exists (select from belfry.skips k where k.shard = $1 and k.job_id = $2 and k.from_nominal = to_timestamp($3::float8 / 1000)
     and k.decided_at >= to_timestamp($3::float8 / 1000) - interval '1 day')`,
)
/** While its timer is held nobody changes it. */
const STATUS = statement('chain_status', `select j.status from belfry.jobs j where j.shard = $1 and j.id = $2`)

/** In order. A timer that somebody else holds is passed over, and answered as such; one that is gone is not answered. */
const HOLD = statement(
  'hold_timers_of_chains',
  `select u.job_id, h.is_held is not null from unnest($1::smallint[], $2::uuid[]) as u (shard, job_id)
   cross join lateral (select from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id limit 1) t
   left join lateral (
     select true as is_held from belfry.timers t where t.shard = u.shard and t.job_id = u.job_id limit 1 for update skip locked) h on true`,
)

export interface ParentOfChain {
  jobId: string
  wanted: number
  onFailure: number
  /** Its run is alive: its end will tell. */
  isAlive: boolean
  /** Its timer is at this time: that becomes a run, or is skipped. */
  isComing: boolean
  /** Null: it has no run of this time. */
  outcome: number | null
}

export async function lookAtParents(tx: Queryable, child: string, nominalAt: Instant): Promise<ParentOfChain[]> {
  const rows = await tx.query<[string, number, number, boolean, boolean, number | null]>(PARENTS, [child, nominalAt])
  return rows.map(([jobId, wanted, onFailure, isAlive, isComing, outcome]) => ({
    ...{ jobId, wanted, onFailure, isAlive, isComing, outcome },
  }))
}

/** Those of the times for which a parent of the job still has a timer. */
export async function stillComing<Time extends { jobId: string; nominalAt: Instant }>(
  tx: Queryable,
  times: readonly Time[],
): Promise<Set<Time>> {
  if (times.length === 0) return new Set()
  const values = [times.map(({ jobId }) => jobId), times.map(({ nominalAt }) => nominalAt)]
  const rows = await tx.query<[number]>(COMING, values)
  return new Set(rows.map(([n]) => times[n - 1] as Time))
}

/** Whether the job has, or had, a run of this nominal time. */
export async function hadRun(tx: Queryable, jobId: string, nominalAt: Instant): Promise<boolean> {
  return (await tx.query<[boolean]>(HAD, [shardOfJob(jobId), jobId, nominalAt]))[0]?.[0] === true
}

/** Whether it is written down already that this nominal time has no run: by the end of another parent, or an earlier one of the same. */
export async function wasSkipped(tx: Queryable, jobId: string, nominalAt: Instant): Promise<boolean> {
  return (await tx.query<[boolean]>(SKIPPED, [shardOfJob(jobId), jobId, nominalAt]))[0]?.[0] === true
}

/** Takes the locks of these jobs; answers those that somebody else holds. */
export async function holdChains(tx: Queryable, jobIds: Iterable<string>): Promise<Set<string>> {
  const placed = Array.from(jobIds, (jobId) => ({ jobId, shard: shardOfJob(jobId) }))
  placed.sort((a, b) => a.shard - b.shard || (a.jobId < b.jobId ? -1 : 1))
  const values = [placed.map(({ shard }) => shard), placed.map(({ jobId }) => jobId)]
  const rows = await tx.query<[string, boolean]>(HOLD, values)
  return new Set(rows.flatMap(([jobId, isHeld]) => (isHeld ? [] : [jobId])))
}

/** Null: there is no such job. */
export async function chainStatus(tx: Queryable, jobId: string): Promise<number | null> {
  return (await tx.query<[number]>(STATUS, [shardOfJob(jobId), jobId]))[0]?.[0] ?? null
}
