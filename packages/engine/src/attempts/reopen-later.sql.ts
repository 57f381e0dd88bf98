import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { parseRunId, shardOfJob } from '../job/ids.ts'
import { OVERLAP, RUN_STATE } from '../job/states.ts'
import { unpackRunsOf } from '../leases/receipts.sql.ts'
import { isAlive } from '../promotion/decide-job.sql.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'

/** As `reopen_run`, but the run waits until it is due, as after a failure; it gets its turn when it is woken. */
const REOPEN = statement(
  'reopen_run_later',
  `with letter as (
     delete from belfry.dead_letters d where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($3::float8 / 1000)
     returning d.nominal_at, d.job_id, d.tenant_id, d.queue_id, d.job_version, d.attempt, d.timeout_ms, d.shard, d.priority, d.cause, d.delivery, d.one_off
   )
   insert into belfry.runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
     delivery, one_off, cancel_requested, has_dependents)
   select l.nominal_at, to_timestamp($4::float8 / 1000), 0, l.job_id, l.tenant_id, l.queue_id, coalesce($5, l.job_version), l.attempt, 0, l.timeout_ms, l.shard,
     ${RUN_STATE.waiting}, l.priority, l.cause, l.delivery, l.one_off, false, false
   from letter l
   returning tenant_id`,
)

const LOCK_TIMEOUT_MS = 5_000

/**
 * Opens the run of a dead letter again, not to start before an instant: same id, attempt numbers go on, failures start at 0. Throws
 * `not_found` if there is no such letter (any more), and `overlap` while a run of the job is alive and its policy is skip.
 */
export async function reopenLater(
  { db, clock, wakeups }: { db: Database; clock: Clock; wakeups: Wakeups },
  runId: string,
  { dueAt, by }: { dueAt: Instant; by: string },
): Promise<void> {
  const parsed = parseRunId(runId)
  if (parsed === null) throw noLetter(runId)
  const run = { ...parsed, shard: shardOfJob(parsed.jobId) }
  await db.transaction(async (tx) => {
    await tx.setLockTimeout(LOCK_TIMEOUT_MS)
    const timer = await lockTimer(tx, run.shard, run.jobId)
    await unpackRunsOf(tx, run)
    if (timer?.overlap === OVERLAP.skip && (await isAlive(tx, run.shard, run.jobId)))
      throw new BelfryError('overlap', 'another run of the job is alive, and its overlap policy is skip')
    // Whoever inserts a run of a job that has a timer raises its version.
    if (timer) await writeTimer(tx, timer)
    const version = timer?.jobVersion ?? null
    const [row] = await tx.query<[number]>(REOPEN, [run.shard, run.jobId, run.nominalAt, dueAt, version])
    if (row === undefined) throw noLetter(runId)
    const change = { subject: 'run', subjectId: runId, action: 'retry', actor: by, at: clock.now() } as const
    await recordChange(tx, { ...change, tenantId: row[0], after: { dueAt: new Date(dueAt).toISOString() } })
  })
  wakeups.waiting(run.shard, dueAt)
}

const noLetter = (runId: string): BelfryError => new BelfryError('not_found', `there is no dead letter ${runId}`)
