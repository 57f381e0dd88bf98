import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { EDGE_STATE } from './edges.sql.ts'

const MAX_SHOWN = 10
const MAX_COUNTED = 10_000

/** Those that failed first: they are why it does not go on. */
const READ = statement(
  'read_waits_of_child',
  `with waits as materialized (
     select e.parent, e.state from belfry.edges e where e.child = $1 and e.tenant_id > 0 limit ${MAX_COUNTED}
   )
   select w.parent, w.state = ${EDGE_STATE.broken}, (select count(*)::int from waits) from waits w order by w.state desc, w.parent limit ${MAX_SHOWN}`,
)

/** What a run waits for: how many jobs, or batches, and a few of them. */
export interface WaitsFor {
  count: number
  jobs: {
    jobId: string
    /** It did not succeed: the run is blocked until it does, or somebody runs or cancels it. */
    hasFailed: boolean
  }[]
}

export async function readWaitsFor(db: Queryable, jobId: string): Promise<WaitsFor> {
  const rows = await db.query<[string, boolean, number]>(READ, [jobId])
  return { count: rows[0]?.[2] ?? 0, jobs: rows.map(([parent, hasFailed]) => ({ jobId: parent, hasFailed })) }
}
