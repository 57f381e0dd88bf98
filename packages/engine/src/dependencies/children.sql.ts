import { shardOfJob } from '../job/ids.ts'
import { ATTEMPT_REASON, type OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Turns } from '../ready/turn.ts'
import type { MadeReady } from '../ready/woken.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { ENDED_RUN, recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'
import { deleteEdgesOfChild, EDGE_STATE } from './edges.sql.ts'
import { keptFairness } from './hold-children.sql.ts'

/** A run that waits for other jobs. */
export interface Child {
  jobId: string
  nominalAt: Instant
}

const RUNS = `unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, nominal_at)`
const BY_KEY = `r.shard = u.shard and r.job_id = u.job_id and r.nominal_at = to_timestamp(u.nominal_at / 1000)
       and r.state = ${RUN_STATE.dependent}`

const LOOK = statement(
  'look_at_children',
  `select u.job_id from ${RUNS} cross join lateral (select from belfry.runs r where ${BY_KEY} limit 1) r`,
)
const RELEASE = statement(
  'release_children',
  `with free as (
     select r.ctid, u.turn from unnest($1::smallint[], $2::tid[], $3::bigint[]) as u (shard, place, turn) cross join lateral (
       select r.ctid from belfry.runs r where r.ctid = u.place and r.shard = u.shard limit 1) r
   )
   update belfry.runs r set state = ${RUN_STATE.ready}, turn = f.turn, due_at = to_timestamp($4::float8 / 1000) from free f where r.ctid = f.ctid
   returning r.queue_id, r.priority, r.delivery, r.turn`,
)
/** They tell their own children. */
const END = statement(
  'end_children',
  `with u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::smallint[]) as outcome,
       unnest($5::text[]) as error, unnest($7::smallint[]) as reason
   ), place as (
     select r.ctid, u.outcome, u.error, u.reason from u cross join lateral (select r.ctid from belfry.runs r where ${BY_KEY} limit 1) r
   ), gone as (
     delete from belfry.runs r using place p where r.ctid = p.ctid
     returning ${ENDED_RUN}, p.outcome, p.error, p.reason
   ), ${recordUnrun('$6', { outcome: 'e.outcome', error: 'e.error', reason: 'e.reason' })}
   select count(*)::int from told`,
)
const HOLD = statement(
  'hold_child',
  `select r.nominal_at, r.queue_id, r.tenant_id, r.priority, r.ctid, r.turn::float8 from belfry.runs r
   where r.shard = $1 and r.job_id = $2 and r.state = ${RUN_STATE.dependent} for update`,
)
/** Held in order, so that of two who look at the same child the second sees what the first made of it. */
const LOCK_EDGES = statement(
  'lock_edges_of_children',
  `select e.child, e.state from unnest($1::uuid[]) as u (child) cross join lateral (
     select e.child, e.state from belfry.edges e where e.child = u.child and e.tenant_id > 0 order by e.shard, e.parent for update) e`,
)

/** Those that still wait, whoever holds them. */
export async function lookAtChildren(tx: Queryable, children: readonly Child[]): Promise<Set<string>> {
  return new Set((await tx.query<[string]>(LOOK, runArrays(children))).flat())
}

/** Children that this transaction holds, and that wait for nobody any more, become ready. */
export async function releaseChildren(
  tx: Queryable,
  children: readonly { jobId: string; place: string; turn: number }[],
  now: Instant,
): Promise<MadeReady[]> {
  if (children.length === 0) return []
  const shards = children.map(({ jobId }) => shardOfJob(jobId))
  const values = [shards, children.map(({ place }) => place), children.map(({ turn }) => turn), now]
  const rows = await tx.query<[number, number, number, string]>(RELEASE, values)
  return rows.map(([queueId, priority, delivery, turn]) => ({ queueId, priority, delivery, turn: Number(turn) }))
}

export interface EndedChild extends Child {
  outcome: typeof OUTCOME.canceled | typeof OUTCOME.skipped
  reason: 'parent_failed' | 'not_needed'
  error: string
}

/** Ends children that this transaction holds; answers for how many of them others wait. */
export async function endChildren(tx: Queryable, children: readonly EndedChild[], now: Instant): Promise<number> {
  if (children.length === 0) return 0
  const [row] = await tx.query<[number]>(END, [
    ...runArrays(children),
    children.map(({ outcome }) => outcome),
    children.map(({ error }) => error),
    now,
    children.map(({ reason }) => ATTEMPT_REASON[reason]),
  ])
  return row?.[0] ?? 0
}

/** Somebody wants a run now that waits for others: it waits no longer. Null: it does not wait. */
export async function releaseByHand(
  tx: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  { turns, now }: { turns: Turns; now: Instant },
): Promise<(MadeReady & { nominalAt: Instant }) | null> {
  const [row] = await tx.query<[Instant, number, number, number, string, number]>(HOLD, [shard, jobId])
  if (row === undefined) return null
  const [nominalAt, queueId, tenantId, priority, place, kept] = row
  await deleteEdgesOfChild(tx, jobId)
  const turn = turns.next(now, { queueId, tenantId, priority, fairnessKey: keptFairness(kept) })
  const [ready] = await releaseChildren(tx, [{ jobId, place, turn }], now)
  return ready === undefined ? null : { ...ready, nominalAt }
}

/** Holds all edges of these children; answers those of them that the failure of a parent has ended. */
export async function lockCanceled(tx: Queryable, children: readonly string[]): Promise<Set<string>> {
  const rows = await tx.query<[string, number]>(LOCK_EDGES, [[...children].sort()])
  return new Set(rows.filter(([, state]) => state === EDGE_STATE.canceled).map(([child]) => child))
}

const runArrays = (runs: readonly Child[]): ArrayValues[] => [
  runs.map(({ jobId }) => shardOfJob(jobId)),
  runs.map(({ jobId }) => jobId),
  runs.map(({ nominalAt }) => nominalAt),
]
