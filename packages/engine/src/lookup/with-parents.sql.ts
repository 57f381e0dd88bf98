import { readParentRuns } from '../dependencies/parent-runs.sql.ts'
import { readWaitsFor } from '../dependencies/waits-for.sql.ts'
import type { After } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { RunView } from './run-view.ts'

const AFTER = statement(
  'after_of_job',
  `select s.definition -> 'after', true from belfry.specs s where s.shard = $1 and s.job_id = $2
   union all select j.definition -> 'after', false from belfry.jobs j where j.shard = $1 and j.id = $2`,
)

/** What the run waited for and how that ended; while it waits, what it waits for. */
export async function withParents<Found extends RunView | null>(db: Queryable, run: Found): Promise<Found> {
  if (run === null) return run
  const [row] = await db.query<[string | null, boolean]>(AFTER, [shardOfJob(run.jobId), run.jobId])
  if (row === undefined || row[0] === null) return run
  const [json, oneOff] = row
  const after = JSON.parse(json) as After
  const [parents = []] = await readParentRuns(db, [{ after, oneOff, nominalAt: run.nominalAt.getTime() }])
  const waits = run.status === 'blocked' && oneOff ? { waitsFor: await readWaitsFor(db, run.jobId) } : {}
  return { ...run, parents, ...waits }
}
