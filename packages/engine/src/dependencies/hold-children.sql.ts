import { CHILD_KIND } from '../job/after.ts'
import { shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Charged } from '../ready/turn.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { EDGE, EDGE_STATE, type Edge } from './edges.sql.ts'

/** A run that waits, and that this transaction holds: no other moves it until the commit. */
export interface HeldChild extends Charged {
  place: string
  delivery: number
}

/** While a run waits for others it has no turn: what stands in its place is the fairness key that it will be charged to. */
export const keptFairness = (turn: number): number | null => (turn === 0 ? null : turn)

/** An edge, where it lies, and its child if that is a run that still waits and that no other transaction holds. */
export interface HeldEdge extends Edge {
  place: string
  held: HeldChild | null
}

const OPEN = columns({
  ...EDGE,
  place: column<string>('e.ctid'),
  /** Null: there is no child to hold, or another transaction holds it. */
  childPlace: column<string | null>('r.ctid'),
  queueId: column<number>('r.queue_id'),
  tenantId: column<number>('r.tenant_id'),
  priority: column<number>('r.priority'),
  kept: column<number>('r.turn::float8'),
  delivery: column<number>('r.delivery'),
})
type Row = RowOf<Read<typeof OPEN>>

/** In the order of children, which is the order in which they are taken; what other transactions hold is passed over. */
const HOLD = statement(
  'hold_children',
  `select ${OPEN.text}
   from (
     select e.* from unnest($1::smallint[], $2::uuid[]) as u (shard, parent) cross join lateral (
       select e.ctid, e.parent, e.child, e.child_shard, e.kind, e.child_nominal, e.wanted, e.on_failure from belfry.edges e
       where e.shard = u.shard and e.parent = u.parent and e.state = ${EDGE_STATE.open} limit $3) e
     order by e.child_shard, e.child limit $3
   ) e left join lateral (
     select r.ctid, r.queue_id, r.tenant_id, r.priority, r.turn, r.delivery from belfry.runs r
     where r.shard = e.child_shard and r.job_id = e.child and r.nominal_at = e.child_nominal and r.state = ${RUN_STATE.dependent}
       and e.kind = ${CHILD_KIND.one_off}
     limit 1 for update skip locked
   ) r on true`,
)

/** The open edges of these jobs, with the runs that wait at their ends. */
export async function holdChildren(tx: Queryable, parents: readonly string[], limit: number): Promise<HeldEdge[]> {
  const rows = await tx.query<Row>(HOLD, [parents.map(shardOfJob), parents, limit])
  return rows.map((row) => {
    const { childPlace, queueId, tenantId, priority, kept, delivery, ...edge } = OPEN.read(row)
    const charged = { queueId, tenantId, priority, fairnessKey: keptFairness(kept) }
    return { ...edge, held: childPlace === null ? null : { place: childPlace, delivery, ...charged } }
  })
}
