import { BelfryError } from '../errors.ts'
import { checkedJobId, JOB_STATUS, noSuchJob } from '../intake/job-row.sql.ts'
import type { Definition } from '../job/definition.ts'
import { shardOfJob } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { refuse } from './understand-backfill.ts'

const READ = statement(
  'job_to_backfill',
  `select j.tenant_id, j.status, t.schedule_id, t.nominal_at, j.definition
   from belfry.jobs j left join belfry.timers t on t.shard = $1 and t.job_id = $2 where j.shard = $1 and j.id = $2`,
)
const IS_ONE_OFF = statement(
  'job_is_one_off',
  'select exists (select from belfry.specs s where s.shard = $1 and s.job_id = $2)',
)

/** A recurring job with a future. */
export interface JobToBackfill {
  shard: number
  jobId: string
  tenantId: number
  scheduleId: string
  /** The first time that its schedule has still to decide: neither this one nor a later one can be backfilled. */
  undecidedFrom: Instant
  /** The first instant that its schedule may fire; null: it has no beginning. */
  beginsAt: Instant | null
}

export async function readJobToBackfill(db: Queryable, id: string): Promise<JobToBackfill> {
  const jobId = checkedJobId(id)
  const shard = shardOfJob(jobId)
  const [row] = await db.query<[number, number, string | null, Instant | null, string]>(READ, [shard, jobId])
  if (!row) {
    const [oneOff] = await db.query<[boolean]>(IS_ONE_OFF, [shard, jobId])
    throw oneOff?.[0]
      ? refuse('jobId', `job ${jobId} is a one-off: only a schedule has times to fill in`)
      : noSuchJob(jobId)
  }
  const [tenantId, status, scheduleId, undecidedFrom, json] = row
  if (status > JOB_STATUS.paused) throw new BelfryError('already_finished', `job ${jobId} has no future any more`)
  if (scheduleId === null || undecidedFrom === null)
    throw new BelfryError('in_progress', `job ${jobId} has not been planned yet: try again`)
  return { shard, jobId, tenantId, scheduleId, undecidedFrom, beginsAt: beginOf(JSON.parse(json) as Definition) }
}

function beginOf({ schedule }: Definition): Instant | null {
  if (schedule === undefined) return null
  return ('every' in schedule ? schedule.anchor : schedule.startAt) ?? null
}
