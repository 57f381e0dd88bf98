import { ATTEMPT_REASON, CAUSE, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { ENDED_RUN, recordUnrun } from '../store/record-ends.ts'
import { statement } from '../store/statement.ts'

/** Ends runs of one job that are not leased. By the whole primary key and without a join, which a plan made on an empty table would turn around. */
const endText = (which: string, { outcome, reason }: { outcome: number; reason: string | number }): string =>
  `with held as (
     select r.nominal_at from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and ${which}
     order by r.nominal_at for update
   ), gone as (
     delete from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at = any (array(select h.nominal_at from held h))
     returning ${ENDED_RUN}
   ), ${recordUnrun('$3', { outcome, error: '$4::text', reason, reasonAt: 'to_timestamp($5::float8 / 1000)' })}, unchecked as (
     delete from belfry.checkpoints c where c.shard = $1 and c.job_id = $2 and c.nominal_at = any (array(select g.nominal_at from gone g))
   ) select g.nominal_at from gone g`

const CANCEL = statement(
  'cancel_waiting_runs',
  endText(
    `($6::float8 is null or r.nominal_at = to_timestamp($6::float8 / 1000)) and r.state <> ${RUN_STATE.leased} and r.cause <> all ($7::smallint[])`,
    { outcome: OUTCOME.canceled, reason: `case when $5::float8 is not null then ${ATTEMPT_REASON.replaced} end` },
  ),
)
/** One that was opened again has begun before: it keeps its place. */
const SUPERSEDE = statement(
  'supersede_blocked_runs',
  endText(`r.state = ${RUN_STATE.blocked} and r.attempt = 0 and r.cause <> ${CAUSE.backfill}`, {
    outcome: OUTCOME.skipped,
    reason: ATTEMPT_REASON.superseded,
  }),
)

/** The runs of a job that somebody wants to end: all of them, or one, but for some causes. */
export interface RunsOfJob {
  shard: number
  jobId: string
  nominalAt: Instant | null
  exceptCauses?: readonly number[]
}

/** A later time of the job that takes the place of runs, and what their history says of it. */
export interface Successor {
  nominalAt: Instant
  error: string
}

/** Answers the nominal times of those that are gone. */
export async function cancelUnleased(
  tx: Queryable,
  { shard, jobId, nominalAt, exceptCauses = [] }: RunsOfJob,
  { now, successor }: { now: Instant; successor?: Successor },
): Promise<Instant[]> {
  const end = [now, successor?.error ?? null, successor?.nominalAt ?? null]
  return (await tx.query<[Instant]>(CANCEL, [shard, jobId, ...end, nominalAt, exceptCauses])).flat()
}

/** Runs that wait for another to end will not be performed any more: a newer one waits in their place. */
export async function supersedeBlocked(
  tx: Queryable,
  { shard, jobId }: { shard: number; jobId: string },
  { now, successor }: { now: Instant; successor: Successor },
): Promise<void> {
  await tx.query(SUPERSEDE, [shard, jobId, now, successor.error, successor.nominalAt])
}
