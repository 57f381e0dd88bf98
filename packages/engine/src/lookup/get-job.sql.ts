import { createdAtOf, isJobId, shardOfJob } from '../job/ids.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type DescribeDeps, type DescribedJob, describeJob } from './describe-job.ts'
import { JOB, type JobRow, jobPlaces } from './job-places.sql.ts'
import { type JobView, jobViewOf } from './job-view.ts'

/**
 * One statement over all places of the shard, so one snapshot: a job is found wherever it is just moving to. Nothing of a
 * job has ended before it was created, which leaves out the days before that; one day of slack is for clocks.
 */
const GET = statement(
  'get_job',
  `select ${JOB.text}
   from (select) one ${jobPlaces('$1::smallint', '$2::uuid', 'to_timestamp($3::float8 / 1000)')}
   where j.id is not null or s.job_id is not null`,
)

/** Null: there is no such job, or it is another tenant's. */
export async function getJob(db: Queryable, tenantId: number | null, jobId: string): Promise<JobView | null> {
  const row = await getJobRow(db, tenantId, jobId)
  return row && jobViewOf(row)
}

/** The same, and says when it runs. */
export async function getDescribedJob(
  db: Queryable,
  deps: DescribeDeps,
  tenantId: number | null,
  jobId: string,
): Promise<DescribedJob | null> {
  const row = await getJobRow(db, tenantId, jobId)
  return row && { ...jobViewOf(row), ...(await describeJob(row, deps)) }
}

async function getJobRow(db: Queryable, tenantId: number | null, jobId: string): Promise<JobRow | null> {
  if (!isJobId(jobId)) return null
  const [row] = await db.query<RowOf<JobRow>>(GET, [shardOfJob(jobId), jobId, createdAtOf(jobId) - DAY_MS])
  if (row === undefined) return null
  const job = JOB.read(row)
  return tenantId === null || job.tenantId === tenantId ? job : null
}
