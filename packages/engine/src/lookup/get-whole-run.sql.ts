import { readRunPayloads } from '../attempts/run-payloads.sql.ts'
import { backfillOfRun } from '../backfill/backfill-runs.sql.ts'
import { readParentRuns } from '../dependencies/parent-runs.sql.ts'
import { readWaitsFor } from '../dependencies/waits-for.sql.ts'
import type { After } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { getRun } from './get-run.sql.ts'
import { readLimitedBy } from './limited-by.sql.ts'
import type { RunView } from './run-view.ts'

const AFTER = statement(
  'after_of_job',
  `select s.definition -> 'after', true from belfry.specs s where s.shard = $1 and s.job_id = $2
   union all select j.definition -> 'after', false from belfry.jobs j where j.shard = $1 and j.id = $2`,
)

/** The run with what stands elsewhere about it: only a run that may have some of it costs the look. */
export async function getWholeRun(
  db: Queryable,
  { tenantId, runId, now }: { tenantId: number | null; runId: string; now: Instant },
): Promise<RunView | null> {
  const run = await getRun(db, tenantId, runId)
  if (run === null) return null
  const { jobId, status, cause } = run
  const at = { shard: shardOfJob(jobId), jobId, nominalAt: run.nominalAt.getTime() }
  const limits = status === 'blocked' ? await readLimitedBy(db, jobId, { nominalAts: [at.nominalAt], now }) : null
  const limitedBy = limits?.get(at.nominalAt)
  const [payload] = cause === 'trigger' ? await readRunPayloads(db, [at]) : []
  const backfillId = cause === 'backfill' ? await backfillOfRun(db, at) : null
  return {
    ...run,
    ...(limitedBy === undefined ? {} : { limitedBy }),
    ...(payload == null ? {} : { payload: JSON.parse(payload) }),
    ...(backfillId === null ? {} : { backfillId }),
    ...(await parentsOf(db, run)),
  }
}

/** What the run waited for and how that ended; while it waits, what it waits for. */
async function parentsOf(
  db: Queryable,
  { jobId, nominalAt, status }: RunView,
): Promise<Pick<RunView, 'parents' | 'waitsFor'>> {
  const [row] = await db.query<[string | null, boolean]>(AFTER, [shardOfJob(jobId), jobId])
  if (row === undefined || row[0] === null) return {}
  const [json, oneOff] = row
  const after = JSON.parse(json) as After
  const [parents = []] = await readParentRuns(db, [{ after, oneOff, nominalAt: nominalAt.getTime() }])
  return status === 'blocked' && oneOff ? { parents, waitsFor: await readWaitsFor(db, jobId) } : { parents }
}
