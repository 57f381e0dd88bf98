import { DEFAULT_PRIORITY, type Definition, usualTimeoutMs } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf } from '../job/flow-keys.ts'
import { createdAtOf, shardOfJob } from '../job/ids.ts'
import { CAUSE, OUTCOME } from '../job/states.ts'
import { insertDependentRuns } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Child } from './children.sql.ts'
import { EDGE_STATE } from './edges.sql.ts'
import { ownEnd } from './own-run.ts'

const SINCE = 'to_timestamp(u.since / 1000)'
const READ = statement(
  'read_broken_edges',
  `select e.parent, e.child, e.child_nominal, e.kind, e.state
   from unnest($1::smallint[], $2::uuid[]) as u (shard, parent) cross join lateral (
     select e.parent, e.child, e.child_nominal, e.kind, e.state from belfry.edges e
     where e.shard = u.shard and e.parent = u.parent and e.state <> ${EDGE_STATE.open}) e`,
)
/**
 * The definition of a canceled one-off is kept as long as an edge leads to it, which may be longer than its history. What that still
 * knows counts: attempt numbers go on, and how it ended.
 */
const ENDED = statement(
  'read_canceled_children',
  `select u.job_id, u.nominal_at, s.tenant_id, s.version, coalesce(n.attempt, 0), s.definition
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::float8[]) as u (shard, job_id, nominal_at, since)
   cross join lateral (
     select s.tenant_id, s.version, s.definition from belfry.specs s where s.shard = u.shard and s.job_id = u.job_id limit 1) s
   left join lateral (
     ${ownEnd('a.outcome', { shard: 'u.shard', jobId: 'u.job_id', since: SINCE })}) a on true
   left join lateral (
     select max(n.number) as attempt from belfry.attempts n
     where n.shard = u.shard and n.job_id = u.job_id and n.finished_at >= ${SINCE}) n on true
   where (a.outcome = ${OUTCOME.canceled}) is not false`,
)

export interface BrokenEdge {
  parent: string
  child: string
  /** The nominal time of the child's run; null: it is a batch. */
  childNominal: Instant | null
  kind: number
  /** Of an edge to a batch: how the parent ended. */
  state: number
}

export async function readBrokenEdges(tx: Queryable, parents: readonly string[]): Promise<BrokenEdge[]> {
  const rows = await tx.query<[string, string, Instant | null, number, number]>(READ, [
    parents.map(shardOfJob),
    parents,
  ])
  return rows.map(([parent, child, childNominal, kind, state]) => ({ parent, child, childNominal, kind, state }))
}

type Row = [
  ...[jobId: string, nominalAt: Instant, tenantId: number, jobVersion: number, attempt: number],
  definition: string,
]

/** A one-off that ended as canceled, as it is opened again: same run, attempt numbers go on. */
export interface CanceledChild extends Child {
  tenantId: number
  jobVersion: number
  attempt: number
  definition: Definition
}

/** In lock order. One that was deleted since is not found. */
export async function readCanceled(tx: Queryable, children: readonly Child[]): Promise<CanceledChild[]> {
  if (children.length === 0) return []
  const sorted = [...children].sort((a, b) => shardOfJob(a.jobId) - shardOfJob(b.jobId) || (a.jobId < b.jobId ? -1 : 1))
  const rows = await tx.query<Row>(ENDED, [
    sorted.map(({ jobId }) => shardOfJob(jobId)),
    sorted.map(({ jobId }) => jobId),
    sorted.map(({ nominalAt }) => nominalAt),
    sorted.map(({ jobId }) => createdAtOf(jobId) - DAY_MS),
  ])
  return rows.map(([jobId, nominalAt, tenantId, jobVersion, attempt, definition]) => ({
    ...{ jobId, nominalAt, tenantId, jobVersion, attempt },
    definition: JSON.parse(definition) as Definition,
  }))
}

export interface QueuedChild extends CanceledChild {
  queueId: number
}

/** They wait again; answers those that do. */
export function insertReopened(tx: Queryable, children: readonly QueuedChild[]): Promise<Child[]> {
  const runs = children.map(({ definition, ...child }) => ({
    ...child,
    shard: shardOfJob(child.jobId),
    dueAt: child.nominalAt,
    cause: CAUSE.create,
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
