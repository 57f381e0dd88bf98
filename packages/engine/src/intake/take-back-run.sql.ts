import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/**
 * It waits for a claim that leases the run at this moment; if the run then has started, nothing is taken back. Runs that were
 * triggered stand beside the job's own, and stay.
 */
const TAKE_BACK = statement(
  'take_back_run',
  `delete from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.attempt = 0 and r.cause = ${CAUSE.create}
     and r.state in (${RUN_STATE.ready}, ${RUN_STATE.waiting}, ${RUN_STATE.limited})
   returning r.nominal_at, r.queue_id, r.timeout_ms, r.priority, r.delivery, r.has_dependents`,
)
const PUT_TIMER = statement(
  'put_timer_anew',
  `insert into belfry.timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery,
     has_dependents, last_trigger_at)
   values (to_timestamp($5::float8 / 1000), to_timestamp($6::float8 / 1000), $2, 1, $4, $3, $7, $8, 0, $1, $9, 0, $10, $11,
     (select max(r.nominal_at) from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.cause = ${CAUSE.trigger}))`,
)

export interface TakenBack {
  nominalAt: Instant
  queueId: number
  timeoutMs: number
  priority: number
  delivery: number
  hasDependents: boolean
}

interface OneOff {
  shard: number
  jobId: string
  tenantId: number
  version: number
}

/** Takes the own run of a one-off that has not started out of the ready ones. Null: it has started, waits for other jobs, or is over. */
export async function takeBackRun(tx: Queryable, { shard, jobId }: OneOff): Promise<TakenBack | null> {
  const [row] = await tx.query<[Instant, number, number, number, number, boolean]>(TAKE_BACK, [shard, jobId])
  if (!row) return null
  const [nominalAt, queueId, timeoutMs, priority, delivery, hasDependents] = row
  return { nominalAt, queueId, timeoutMs, priority, delivery, hasDependents }
}

export async function putTimerAnew(tx: Queryable, job: OneOff, taken: TakenBack, now: Instant): Promise<void> {
  const { shard, jobId, tenantId, version } = job
  const { nominalAt, queueId, timeoutMs, priority, delivery, hasDependents } = taken
  const place = [shard, jobId, tenantId, version]
  await tx.execute(PUT_TIMER, [...place, now, nominalAt, queueId, timeoutMs, priority, delivery, hasDependents])
}
