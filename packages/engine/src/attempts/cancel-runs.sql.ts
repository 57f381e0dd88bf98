import { OUTCOME, RUN_STATE } from '../job/states.ts'
import { unpackRunsOf } from '../leases/receipts.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** A run that ends without a lease leaves a history row with the number 0: nothing vanishes. */
const NEVER_LEASED = `insert into belfry.attempts (nominal_at, due_at, finished_at, job_id, tenant_id, queue_id, job_version, number, shard, outcome, failure_class,
     cause, counted, final)`

const REMOVE_WAITING = statement(
  'cancel_waiting_runs',
  `with held as (
     select r.shard, r.job_id, r.nominal_at from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000)) and r.state <> ${RUN_STATE.leased}
     order by r.nominal_at for update
   ), gone as (
     delete from belfry.runs r using held h where r.shard = h.shard and r.job_id = h.job_id and r.nominal_at = h.nominal_at
     returning r.nominal_at, r.due_at, r.job_id, r.tenant_id, r.queue_id, r.job_version, r.shard, r.cause
   ), unchecked as (
     delete from belfry.checkpoints c using gone g where c.shard = g.shard and c.job_id = g.job_id and c.nominal_at = g.nominal_at
   )
   ${NEVER_LEASED}
   select g.nominal_at, g.due_at, to_timestamp($4::float8 / 1000), g.job_id, g.tenant_id, g.queue_id, g.job_version, 0, g.shard, ${OUTCOME.canceled}, null, g.cause,
     false, true
   from gone g returning nominal_at`,
)
/** The request shortens the lease and ends its extension; the reaper closes what the worker does not. */
const ASK_LEASED = statement(
  'ask_leased_runs_to_stop',
  `update belfry.runs r set cancel_requested = true, lease_until = least(r.lease_until, to_timestamp($4::float8 / 1000))
   where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000)) and r.state = ${RUN_STATE.leased}
   returning r.nominal_at`,
)
const RECORD_ONE_OFF = statement(
  'record_canceled_one_off',
  `${NEVER_LEASED}
   values (to_timestamp($3::float8 / 1000), to_timestamp($3::float8 / 1000), to_timestamp($4::float8 / 1000), $2, $5, $6, $7, 0, $1, ${OUTCOME.canceled}, null, 1, false, true)`,
)

const UNASKED = statement(
  'has_run_not_asked_to_stop',
  `select exists (select from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.state = ${RUN_STATE.leased} and not r.cancel_requested)`,
)

/** Whether a run of the job is performed that nobody has asked to stop yet. */
export async function hasUnaskedRun(tx: Queryable, job: { shard: number; jobId: string }): Promise<boolean> {
  return (await tx.query<[boolean]>(UNASKED, [job.shard, job.jobId]))[0]?.[0] === true
}

export interface CanceledRuns {
  /** Nominal times of runs that nobody performed: they are gone. */
  removed: Instant[]
  /** Nominal times of leased runs: their holders are asked to stop. */
  asked: Instant[]
}

const WAS_CANCELED = statement(
  'job_was_canceled',
  `select exists (select from belfry.attempts a
     where a.shard = $1 and a.job_id = $2 and a.finished_at >= to_timestamp($3::float8 / 1000) and a.final and a.outcome = ${OUTCOME.canceled})`,
)

/** Whether a one-off ended by being canceled. Nothing of it has ended before `since`, which leaves out the days before. */
export async function wasCanceled(
  tx: Queryable,
  job: { shard: number; jobId: string },
  since: Instant,
): Promise<boolean> {
  return (await tx.query<[boolean]>(WAS_CANCELED, [job.shard, job.jobId, since]))[0]?.[0] === true
}

/** Cancels the live runs of a job, or one of them. What a claim took meanwhile stands in its receipt, and is asked as well. */
export async function cancelRuns(
  tx: Queryable,
  run: { shard: number; jobId: string; nominalAt: Instant | null },
  at: { now: Instant; graceUntil: Instant; leased: 'ask' | 'leave' },
): Promise<CanceledRuns> {
  const removed: Instant[] = []
  const asked = new Set<Instant>()
  do {
    const gone = await tx.query<[Instant]>(REMOVE_WAITING, [run.shard, run.jobId, run.nominalAt, at.now])
    removed.push(...gone.flat())
    if (at.leased === 'leave') continue
    const told = await tx.query<[Instant]>(ASK_LEASED, [run.shard, run.jobId, run.nominalAt, at.graceUntil])
    for (const [nominalAt] of told) asked.add(nominalAt)
  } while (await unpackRunsOf(tx, run))
  return { removed, asked: [...asked] }
}

/** A delayed one-off that was canceled before it became a run. */
export async function recordCanceledOneOff(
  tx: Queryable,
  timer: {
    shard: number
    jobId: string
    nominalAt: Instant | null
    tenantId: number
    queueId: number
    jobVersion: number
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
  ])
}
