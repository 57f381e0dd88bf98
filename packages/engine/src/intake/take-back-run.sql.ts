import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { JobRow } from './job-row.sql.ts'

const TAKEN = columns({
  nominalAt: column<Instant>('r.nominal_at'),
  queueId: column<number>('r.queue_id'),
  timeoutMs: column<number>('r.timeout_ms'),
  priority: column<number>('r.priority'),
  delivery: column<number>('r.delivery'),
  hasDependents: column<boolean>('r.has_dependents'),
})
type TakenBack = Read<typeof TAKEN>

/**
 * It waits for a claim that leases the run at this moment; if the run then has started, nothing is taken back. Runs that were
 * triggered stand beside the job's own, and stay.
 */
const TAKE_BACK = statement(
  'take_back_run',
  `delete from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.attempt = 0 and r.cause = ${CAUSE.create}
     and r.state in (${RUN_STATE.ready}, ${RUN_STATE.waiting}, ${RUN_STATE.limited})
   returning ${TAKEN.text}`,
)
const PUT_TIMER = statement(
  'put_timer_anew',
  `insert into belfry.timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery,
     has_dependents, last_trigger_at)
   values (to_timestamp($5::float8 / 1000), to_timestamp($6::float8 / 1000), $2, 1, $4, $3, $7, $8, 0, $1, $9, 0, $10, $11,
     (select max(r.nominal_at) from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.cause = ${CAUSE.trigger}))`,
)

type OneOff = Pick<JobRow, 'shard' | 'jobId' | 'tenantId' | 'version'>

/** Takes the own run of a one-off that has not started out of the ready ones. Null: it has started, waits for other jobs, or is over. */
export async function takeBackRun(tx: Queryable, { shard, jobId }: OneOff): Promise<TakenBack | null> {
  const [row] = await tx.query<RowOf<TakenBack>>(TAKE_BACK, [shard, jobId])
  return row ? TAKEN.read(row) : null
}

export async function putTimerAnew(tx: Queryable, job: OneOff, taken: TakenBack, now: Instant): Promise<void> {
  const { shard, jobId, tenantId, version } = job
  const { nominalAt, queueId, timeoutMs, priority, delivery, hasDependents } = taken
  const place = [shard, jobId, tenantId, version]
  await tx.execute(PUT_TIMER, [...place, now, nominalAt, queueId, timeoutMs, priority, delivery, hasDependents])
}
