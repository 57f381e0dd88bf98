import { CHILD_KIND } from '../job/after.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { EDGE_STATE } from './edges.sql.ts'
import { isHeardOf } from './own-run.ts'

const NOT_THERE = `not exists (select from belfry.runs r where r.shard = e.shard and r.job_id = e.parent and ${isHeardOf('r')})
       and not exists (select from belfry.timers t where t.shard = e.shard and t.job_id = e.parent)
       and not exists (select from belfry.dead_letters d where d.shard = e.shard and d.job_id = e.parent and ${isHeardOf('d')})
       and not exists (select from belfry.outbox o where o.shard = e.shard and o.job_id = e.parent)`
/**
 * An edge whose child does not wait any more is kept for one reason: the parent's failure ended the child, and the parent may be
 * opened again. That it may while it is alive or has a dead letter, or while the failure of a parent of its own ended it. The walk
 * is along the primary key, so that all batches together read the table once; children of children go with the next walk.
 */
const PURGE = statement(
  'purge_edges',
  `with visited as (
     select e.shard, e.parent, e.child, e.child_shard, e.state, e.kind from belfry.edges e
     where (e.shard, e.parent, e.child) > ($1::smallint, $2::uuid, $3::uuid) order by e.shard, e.parent, e.child limit $4
   ), gone as (
     delete from belfry.edges e using visited v
     where e.shard = v.shard and e.parent = v.parent and e.child = v.child and v.kind = ${CHILD_KIND.one_off} and v.state <> ${EDGE_STATE.open}
       and not exists (select from belfry.runs r where r.shard = v.child_shard and r.job_id = v.child and r.state = ${RUN_STATE.dependent})
       and (v.state = ${EDGE_STATE.broken} or (${NOT_THERE}
         and not exists (select from belfry.edges p where p.child = v.parent and p.tenant_id > 0 and p.state = ${EDGE_STATE.canceled})))
   )
   select v.shard, v.parent, v.child from visited v order by v.shard, v.parent, v.child offset $4 - 1 limit 1`,
)

const BATCH = 1_000
const FIRST = '00000000-0000-0000-0000-000000000000'

/** Removes edges of failures that nobody can undo any more. Goes over all edges, however many: a call that stopped would begin anew. */
export async function purgeEdges(db: Queryable): Promise<void> {
  let after: [number, string, string] = [-1, FIRST, FIRST]
  for (;;) {
    const [last] = await db.query<[number, string, string]>(PURGE, [...after, BATCH])
    if (last === undefined) return
    after = last
  }
}
