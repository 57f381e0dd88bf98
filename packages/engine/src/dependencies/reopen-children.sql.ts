import { DEFAULT_PRIORITY, type Definition, usualTimeoutMs } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf } from '../job/flow-keys.ts'
import { createdAtOf, shardOfJob } from '../job/ids.ts'
import { OUTCOME } from '../job/states.ts'
import { insertDependentRuns } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Child } from './children.sql.ts'
import { EDGE_STATE } from './edges.sql.ts'

const READ = statement(
  'read_broken_edges',
  `select e.parent, e.child, e.kind, e.state
   from unnest($1::smallint[], $2::uuid[]) as u (shard, parent) cross join lateral (
     select e.parent, e.child, e.kind, e.state from belfry.edges e
     where e.shard = u.shard and e.parent = u.parent and e.state <> ${EDGE_STATE.open}) e`,
)
/** What history and the definition of a canceled one-off know of it. */
const ENDED = statement(
  'read_canceled_children',
  `select u.job_id, a.nominal_at, a.due_at, a.tenant_id, a.queue_id, a.job_version, a.attempt, a.cause, s.definition
   from unnest($1::smallint[], $2::uuid[], $3::float8[]) as u (shard, job_id, since)
   cross join lateral (
     select a.nominal_at, a.due_at, a.tenant_id, a.queue_id, a.job_version, a.cause, a.outcome,
       (select max(n.number) from belfry.attempts n where n.shard = u.shard and n.job_id = u.job_id and n.finished_at >= to_timestamp(u.since / 1000)) as attempt
     from belfry.attempts a
     where a.shard = u.shard and a.job_id = u.job_id and a.finished_at >= to_timestamp(u.since / 1000) and a.final
     order by a.finished_at desc limit 1) a
   cross join lateral (
     select s.definition from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s
   where a.outcome = ${OUTCOME.canceled}`,
)

export interface BrokenEdge {
  parent: string
  child: string
  kind: number
  /** Of an edge to a batch: how the parent ended. */
  state: number
}

export async function readBrokenEdges(tx: Queryable, parents: readonly string[]): Promise<BrokenEdge[]> {
  const rows = await tx.query<[string, string, number, number]>(READ, [parents.map(shardOfJob), parents])
  return rows.map(([parent, child, kind, state]) => ({ parent, child, kind, state }))
}

type Row = [
  ...[jobId: string, nominalAt: Instant, dueAt: Instant, tenantId: number, queueId: number, jobVersion: number],
  ...[attempt: number, cause: number, definition: string],
]

/** A one-off that ended as canceled, as it is opened again: same run, attempt numbers go on. */
export interface CanceledChild extends Child {
  dueAt: Instant
  tenantId: number
  queueId: number
  jobVersion: number
  attempt: number
  cause: number
  definition: Definition
}

/** In lock order. One that was deleted since is not found. */
export async function readCanceled(tx: Queryable, jobIds: readonly string[]): Promise<CanceledChild[]> {
  if (jobIds.length === 0) return []
  const sorted = [...jobIds].sort((a, b) => shardOfJob(a) - shardOfJob(b) || (a < b ? -1 : 1))
  const since = sorted.map((jobId) => createdAtOf(jobId) - DAY_MS)
  const rows = await tx.query<Row>(ENDED, [sorted.map(shardOfJob), sorted, since])
  return rows.map(([jobId, nominalAt, dueAt, tenantId, queueId, jobVersion, attempt, cause, definition]) => ({
    ...{ jobId, nominalAt, dueAt, tenantId, queueId, jobVersion, attempt, cause },
    definition: JSON.parse(definition) as Definition,
  }))
}

/** They wait again; answers those that do. */
export function insertReopened(tx: Queryable, children: readonly CanceledChild[]): Promise<Child[]> {
  const runs = children.map(({ definition, ...child }) => ({
    ...child,
    shard: shardOfJob(child.jobId),
    // Its turn comes when it is ready.
    turn: fairnessKeyOf(definition) ?? 0,
    timeoutMs: definition.timeoutMs ?? usualTimeoutMs(definition),
    priority: definition.priority ?? DEFAULT_PRIORITY,
    delivery: deliveryOf(definition),
    oneOff: true,
    limitKey: limitKeyOf(definition, child.tenantId, child.jobId),
  }))
  return insertDependentRuns(tx, runs)
}
