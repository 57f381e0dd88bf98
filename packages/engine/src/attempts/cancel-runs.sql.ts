import { ownEnd } from '../dependencies/own-run.ts'
import { CAUSE, OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'
import type { Timer } from '../timers/timer.ts'

const RECORD_ONE_OFF = statement(
  'record_canceled_one_off',
  `with gone as (
     select n.nominal_at, n.nominal_at as due_at, $2::uuid as job_id, $5::int as tenant_id, $6::int as queue_id, $7::int as job_version, $1::smallint as shard,
       ${CAUSE.create} as cause, true as one_off, $8::boolean as has_dependents, 0 as attempt
     from (select to_timestamp($3::float8 / 1000)) as n (nominal_at)
   ), ${recordUnrun('$4', { outcome: OUTCOME.canceled })} select from gone`,
)

const WAS_CANCELED = statement(
  'job_was_canceled',
  `select e.outcome = ${OUTCOME.canceled} from (
     ${ownEnd('a.outcome', { shard: '$1', jobId: '$2', since: 'to_timestamp($3::float8 / 1000)' })}) e`,
)

/** Whether the last run of a one-off ended by being canceled. Nothing of it has ended before `since`, which leaves out the days before. */
export async function wasCanceled(
  tx: Queryable,
  job: { shard: number; jobId: string },
  since: Instant,
): Promise<boolean> {
  return (await tx.query<[boolean]>(WAS_CANCELED, [job.shard, job.jobId, since]))[0]?.[0] === true
}

/** A delayed one-off that was canceled before it became a run. */
export async function recordCanceledOneOff(
  tx: Queryable,
  timer: Pick<Timer, 'shard' | 'jobId' | 'nominalAt' | 'tenantId' | 'queueId' | 'jobVersion'> & {
    hasDependents?: boolean
  },
  now: Instant,
): Promise<void> {
  await tx.query(RECORD_ONE_OFF, [
    timer.shard,
    timer.jobId,
    timer.nominalAt ?? now,
    now,
    timer.tenantId,
    timer.queueId,
    timer.jobVersion,
    timer.hasDependents ?? false,
  ])
}
