import { recordChange } from '../audit/record-change.sql.ts'
import { type ReopenDeps, reopenChildren } from '../dependencies/reopen-children.ts'
import { BelfryError, refusal } from '../errors.ts'
import { DEFAULT_OVERLAP } from '../job/definition.ts'
import { parseRunId, shardOfJob } from '../job/ids.ts'
import { OVERLAP, type Overlap, RUN_STATE } from '../job/states.ts'
import { type Canceled, canceledOf, stopLive } from '../promotion/stop-live.ts'
import { insertRuns } from '../ready/insert-runs.sql.ts'
import type { Turns } from '../ready/turn.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Queryable } from '../store/database.ts'
import type { InTurn } from '../store/share.ts'
import { statement } from '../store/statement.ts'
import { jobRow, lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'

/** Deleting the dead letter is the compare-and-set: of two who redrive it, one finds nothing. */
const REOPEN = statement(
  'reopen_run',
  `with letter as (
     delete from belfry.dead_letters d where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($3::float8 / 1000)
     returning d.nominal_at, to_timestamp($4::float8 / 1000) as due_at, $5::bigint as turn, d.job_id, d.tenant_id, d.queue_id,
       coalesce($6, d.job_version) as job_version, d.attempt, d.timeout_ms, d.shard, d.priority, d.cause, d.delivery, d.one_off, d.has_dependents, d.limit_key
   )
   ${insertRuns('letter', { state: '$7' })}
   returning queue_id, priority, delivery, turn, tenant_id, has_dependents`,
)
/** How many runs of the job are alive, whether this is one of them, and who is charged if it is opened again. */
const LIVE = statement(
  'run_is_live',
  `select l.live, l.same, d.queue_id, d.tenant_id, d.priority
   from (select count(*)::int as live, count(*) filter (where r.nominal_at = to_timestamp($3::float8 / 1000))::int as same
     from belfry.runs r where r.shard = $1 and r.job_id = $2) l
   left join lateral (
     select d.queue_id, d.tenant_id, d.priority from belfry.dead_letters d
     where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($3::float8 / 1000) limit 1) d on true`,
)
type LiveRow = [live: number, same: number, queueId: number | null, tenantId: number, priority: number]
/** Where there is no timer any more, this is the job's lock. */
const LOCK_JOB = statement(
  'lock_job_without_timer',
  `select j.definition ->> 'overlap' from belfry.jobs j where j.shard = $1 and j.id = $2 for update`,
)
/** Before a cancel removes it: whose it is, and whether somebody has asked before. */
const TENANT_OF_RUN = statement(
  'tenant_of_run',
  `select r.tenant_id, r.cancel_requested from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000)`,
)
const KNOWN = statement(
  'run_is_known',
  `select exists (select from belfry.attempts a where a.shard = $1 and a.job_id = $2 and a.nominal_at = to_timestamp($3::float8 / 1000))`,
)

export interface RunChangesDeps extends ReopenDeps {
  db: InTurn
  clock: Clock
  turns: Turns
  wakeups: Wakeups
  cancelGraceMs: number
}

/** What people do to single runs: cancel them, or open a dead one again. Each writes down who did it (`by`). */
export class RunChanges {
  readonly #deps: RunChangesDeps

  constructor(deps: RunChangesDeps) {
    this.#deps = deps
  }

  /** Again: the same answer, until it has finished. */
  async cancel(runId: string, by: string): Promise<Canceled> {
    const { db, clock, wakeups, cancelGraceMs } = this.#deps
    const run = this.#parse(runId)
    const canceled = await db.transactionOn([jobRow(run.jobId)], async (tx) => {
      const now = clock.now()
      const [owner] = await tx.query<[number, boolean]>(TENANT_OF_RUN, [run.shard, run.jobId, run.nominalAt])
      const done = await stopLive(tx, run, { now, graceMs: cancelGraceMs, leased: 'ask' })
      if (owner && done.removed.length + done.asked.length > 0) {
        const after = canceledOf(done)
        const [tenantId, wasAsked] = owner
        if (!wasAsked) await record(tx, { tenantId, runId, action: 'cancel', by, after, at: now })
        return done
      }
      const [known] = await tx.query<[boolean]>(KNOWN, [run.shard, run.jobId, run.nominalAt])
      throw known?.[0]
        ? new BelfryError('already_finished', `run ${runId} has finished already`)
        : new BelfryError('not_found', `there is no run ${runId}`)
    })
    for (const nominalAt of canceled.asked) wakeups.cancel(run.jobId, nominalAt)
    if (canceled.removed.length > 0) this.#deps.wakeups.gone(run.jobId)
    return canceledOf(canceled)
  }

  /**
   * Reopens the same run: same id, attempt numbers go on, failures start at 0. It starts at once, or not before `dueAt`; and
   * unless runs of the job may overlap, not before the one that is alive has ended.
   */
  async retry(runId: string, by: string, dueAt: Instant | null = null): Promise<{ runId: string }> {
    const { db, clock, turns, wakeups } = this.#deps
    const run = this.#parse(runId)
    const opened = await db.transactionOn([jobRow(run.jobId)], async (tx) => {
      await this.#deps.retakeUnique(tx, run.jobId)
      const timer = await lockTimer(tx, run.shard, run.jobId)
      const overlap = timer?.overlap ?? (await this.#overlapOf(tx, run))
      const [found] = await tx.query<LiveRow>(LIVE, [run.shard, run.jobId, run.nominalAt])
      const [live, same, queueOf, tenantOf, priorityOf] = found as LiveRow
      if (same > 0) throw new BelfryError('not_retryable', `run ${runId} is still alive`)
      const now = clock.now()
      // Whoever inserts a run of a job that has a timer raises its version.
      if (timer) await writeTimer(tx, timer)
      const isBlocked = live > 0 && overlap !== OVERLAP.allow
      const state = isBlocked ? RUN_STATE.blocked : dueAt === null ? RUN_STATE.ready : RUN_STATE.waiting
      // Opened again by somebody it is new work, which a thousand others may be at the same time.
      const charged = { tenantId: tenantOf, priority: priorityOf, fairnessKey: timer?.fairnessKey ?? null }
      const isCharged = state === RUN_STATE.ready && queueOf !== null
      const [row] = await tx.query<[number, number, number, string, number, boolean]>(REOPEN, [
        run.shard,
        run.jobId,
        run.nominalAt,
        dueAt ?? now,
        isCharged ? turns.next(now, { ...charged, queueId: queueOf }) : 0,
        timer?.jobVersion ?? null,
        state,
      ])
      if (row) {
        if (isBlocked) this.#deps.wakeups.blocked(run.jobId)
        const [queueId, priority, delivery, turn, tenantId, isAwaited] = row
        const hasMore = isAwaited && (await reopenChildren(tx, [run], this.#deps, now)) !== 'whole'
        const after = dueAt === null ? undefined : { dueAt: new Date(dueAt).toISOString() }
        await record(tx, { tenantId, runId, action: 'retry', by, after, at: now })
        return { state, hasMore, run: { queueId, priority, delivery, turn: Number(turn) } }
      }
      const [known] = await tx.query<[boolean]>(KNOWN, [run.shard, run.jobId, run.nominalAt])
      throw known?.[0]
        ? new BelfryError('not_retryable', `run ${runId} did not fail: trigger the job to run it again`)
        : new BelfryError('not_found', `there is no run ${runId}`)
    })
    if (opened.hasMore) this.#deps.wakeups.told()
    if (opened.state === RUN_STATE.ready) wakeups.ready(opened.run)
    else if (opened.state === RUN_STATE.waiting) wakeups.waiting(run.shard, dueAt ?? clock.now())
    return { runId }
  }

  /** Of a recurring job without a future, as its definition says; runs of a one-off do not mind each other. */
  async #overlapOf(tx: Queryable, { shard, jobId }: { shard: number; jobId: string }): Promise<number> {
    const [job] = await tx.query<[Overlap | null]>(LOCK_JOB, [shard, jobId])
    return job ? OVERLAP[job[0] ?? DEFAULT_OVERLAP] : OVERLAP.allow
  }

  #parse(runId: string): { shard: number; jobId: string; nominalAt: Instant } {
    const parsed = parseRunId(runId)
    const said = 'a run id is a job id, a dot, and its nominal time'
    if (!parsed) throw refusal('invalid_argument', 'runId', 'must be a run id', said)
    return { ...parsed, shard: shardOfJob(parsed.jobId) }
  }
}

function record(
  tx: Queryable,
  {
    runId,
    by,
    ...change
  }: { tenantId: number; runId: string; action: string; by: string; after?: unknown; at: Instant },
): Promise<void> {
  return recordChange(tx, { ...change, subject: 'run', subjectId: runId, actor: by })
}
