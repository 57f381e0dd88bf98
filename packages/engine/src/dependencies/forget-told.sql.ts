import { shardOfJob } from '../job/ids.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { HeldEdge } from './hold-children.sql.ts'
import type { HeldEnd } from './outbox.sql.ts'

/**
 * Removes edges by where they lie, and looks whose they are: where somebody else has ended the child meanwhile, another edge may
 * lie there. It sees the edges as they were, without those that others removed before their children were held here; so a child waits
 * for nobody any more that has no more of them than go now.
 */
const FORGET = statement(
  'forget_told',
  `with place as (
     select e.ctid from unnest($1::smallint[], $2::tid[], $3::uuid[]) as u (shard, place, child) cross join lateral (
       select e.ctid from belfry.edges e where e.ctid = u.place and e.shard = u.shard and e.child = u.child limit 1) e
   ), gone as (
     delete from belfry.edges e where e.ctid = any (array(select p.ctid from place p))
   ), told as (
     delete from belfry.outbox o where o.ctid = any ($4::tid[])
   )
   select c.child from unnest($5::uuid[], $6::int[]) as c (child, going)
   where (select count(*) from (select from belfry.edges e where e.child = c.child and e.tenant_id > 0 limit c.going + 1) e) <= c.going`,
)

/** Answers which of the children, of each of which so many edges go, wait for nobody any more. */
export async function forgetTold(
  tx: Queryable,
  { edges, ends, going }: { edges: readonly HeldEdge[]; ends: readonly HeldEnd[]; going: ReadonlyMap<string, number> },
): Promise<string[]> {
  const rows = await tx.query<[string]>(FORGET, [
    edges.map(({ parent }) => shardOfJob(parent)),
    edges.map(({ place }) => place),
    edges.map(({ child }) => child),
    ends.map(({ place }) => place),
    [...going.keys()],
    [...going.values()],
  ])
  return rows.flat()
}
