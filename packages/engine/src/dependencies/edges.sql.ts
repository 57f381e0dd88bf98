import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** `broken`: the parent failed. `canceled`: that ended the child, which is opened again together with the parent. */
export const EDGE_STATE = { open: 0, broken: 1, canceled: 2 } as const

/** One job waits for another. */
export const EDGE = {
  parent: column<string>('e.parent'),
  child: column<string>('e.child'),
  kind: column<number>('e.kind'),
  /** The nominal time of the run that waits; null for chains and batches. */
  childNominal: column<Instant | null>('e.child_nominal'),
  wanted: column<number>('e.wanted'),
  onFailure: column<number>('e.on_failure'),
}
const COLUMNS = columns(EDGE)
export type Edge = Read<typeof COLUMNS>

export interface NewEdge extends Edge {
  tenantId: number
}

type Pair = Pick<Edge, 'parent' | 'child'>

const INSERT_TEXT = `insert into belfry.edges (child_nominal, parent, child, tenant_id, shard, child_shard, kind, wanted, on_failure)
   select to_timestamp(u.child_nominal / 1000), u.parent, u.child, u.tenant_id, u.shard, u.child_shard, u.kind, u.wanted, u.on_failure
   from (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as parent, unnest($3::uuid[]) as child, unnest($4::smallint[]) as child_shard,
       unnest($5::float8[]) as child_nominal, unnest($6::int[]) as tenant_id, unnest($7::smallint[]) as kind, unnest($8::smallint[]) as wanted,
       unnest($9::smallint[]) as on_failure) u`
/** Of jobs that no call has sent before nothing is there to be compared, which spares a fifth of the work. */
const INSERT = {
  first: statement('insert_edges', INSERT_TEXT),
  again: statement('insert_edges_again', `${INSERT_TEXT} on conflict do nothing`),
}
const READ = statement(
  'read_open_edges',
  `select ${COLUMNS.text}
   from unnest($1::smallint[], $2::uuid[]) as u (shard, parent) cross join lateral (
     select ${COLUMNS.text} from belfry.edges e
     where e.shard = u.shard and e.parent = u.parent and e.state = ${EDGE_STATE.open}
     limit $3) e
   limit $3`,
)
/** The ctid is good enough: only a transaction that holds the parent's row of the outbox, or has opened the parent again, changes its edges. */
const PLACES = `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::uuid[]) as u (shard, parent, child)
   ), place as (
     select e.ctid from u cross join lateral (
       select e.ctid from belfry.edges e where e.shard = u.shard and e.parent = u.parent and e.child = u.child limit 1) e
   )`
const MARK = statement(
  'mark_edges',
  `${PLACES} update belfry.edges e set state = $4::smallint where e.ctid = any (array(select p.ctid from place p))`,
)
const DELETE_OF_CHILD = statement(
  'delete_edges_of_child',
  'delete from belfry.edges e where e.child = $1 and e.tenant_id > 0',
)

export async function insertEdges(tx: Queryable, edges: NewEdge[], sending: keyof typeof INSERT): Promise<void> {
  if (edges.length === 0) return
  // As the table is: what is inserted together lies together. Each shard is read out of its id once, not at every comparison.
  const placed = edges.map((edge) => ({ edge, shard: shardOfJob(edge.parent) }))
  placed.sort((a, b) => a.shard - b.shard || (a.edge.parent < b.edge.parent ? -1 : 1))
  const column = (of: (edge: NewEdge) => string | number | null): ArrayValues => placed.map(({ edge }) => of(edge))
  await tx.execute(INSERT[sending], [
    placed.map(({ shard }) => shard),
    column(({ parent }) => parent),
    column(({ child }) => child),
    column(({ child }) => shardOfJob(child)),
    column(({ childNominal }) => childNominal),
    column(({ tenantId }) => tenantId),
    column(({ kind }) => kind),
    column(({ wanted }) => wanted),
    column(({ onFailure }) => onFailure),
  ])
}

/** Of these parents, `limit` at most: the rest is read when those are gone. */
export async function readOpenEdges(tx: Queryable, parents: readonly string[], limit: number): Promise<Edge[]> {
  const rows = await tx.query<RowOf<Edge>>(READ, [parents.map(shardOfJob), parents, limit])
  return rows.map((row) => COLUMNS.read(row))
}

export async function markEdges(tx: Queryable, pairs: readonly Pair[], state: number): Promise<void> {
  if (pairs.length > 0) await tx.execute(MARK, [...pairArrays(pairs), state])
}

/** The child waits for no job any more. */
export async function deleteEdgesOfChild(tx: Queryable, child: string): Promise<void> {
  await tx.execute(DELETE_OF_CHILD, [child])
}

const pairArrays = (pairs: readonly Pair[]): ArrayValues[] => [
  pairs.map(({ parent }) => shardOfJob(parent)),
  pairs.map(({ parent }) => parent),
  pairs.map(({ child }) => child),
]
