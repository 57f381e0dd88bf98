import { recordChange } from '../audit/record-change.sql.ts'
import { BelfryError } from '../errors.ts'
import { newJobId } from '../job/ids.ts'
import type { Schedules } from '../promotion/schedules.sql.ts'
import { stopLive } from '../promotion/stop-live.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Random } from '../runtime/random.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database, Transaction } from '../store/database.ts'
import { jobRow, lockTimer } from '../timers/lock-timer.sql.ts'
import { BACKFILL_STATUS, type Backfill, type BackfillView, backfillView } from './backfill.ts'
import { lockBackfill, putBackfill, readBackfill, writeBackfill } from './backfill-rows.sql.ts'
import { readOpenRuns, settleRuns } from './backfill-runs.sql.ts'
import { type JobToBackfill, readJobToBackfill } from './job-to-backfill.sql.ts'
import { type BackfillPlan, inWords, planBackfill } from './plan-backfill.ts'
import { traceableSince } from './traces.ts'
import { refuse, UNCONFIRMED, type UnderstoodBackfill, understandBackfill } from './understand-backfill.ts'

export interface BackfillsDeps {
  db: Database
  clock: Clock
  random: Random
  schedules: Schedules
  wakeups: Wakeups
  cancelGraceMs: number
  historyDays: number
}

/** What a backfill would do. */
export interface BackfillPreview {
  /** How many runs it would make. */
  count: number
  /** How many times have a run already. */
  leftOut: number
  /** A few of those that would become runs. */
  times: { first: Date[]; last: Date[] }
  from: Date
  to: Date
  notes: string[]
}

export type CreatedBackfill = BackfillView & { notes: string[] }

/** What people do with backfills; the Backfiller does the rest. Each change writes down who did it (`by`). */
export class Backfills {
  readonly #deps: BackfillsDeps

  constructor(deps: BackfillsDeps) {
    this.#deps = deps
  }

  /** Says what a backfill would do, and does nothing. */
  async preview(jobId: string, input: unknown): Promise<BackfillPreview> {
    const { plan } = await this.#plan(jobId, understandBackfill(input))
    const { count, leftOut, from, to, notes } = plan
    const times = { first: datesOf(plan.first), last: datesOf(plan.last) }
    return { count, leftOut, times, from: new Date(from), to: new Date(to), notes }
  }

  /** From its commit on the owner of the job's shard makes the runs. */
  async create(jobId: string, input: unknown, by: string): Promise<CreatedBackfill> {
    const { db, clock, random, wakeups } = this.#deps
    const asked = understandBackfill(input)
    const { job, plan } = await this.#plan(jobId, asked)
    mustBeMeant(plan, asked)
    const backfill = await db.callers.transactionOn([jobRow(job.jobId)], async (tx) => {
      const timer = await lockTimer(tx, job.shard, job.jobId)
      if (!timer) throw new BelfryError('already_finished', `job ${jobId} has no future any more`)
      if (timer.scheduleId !== job.scheduleId)
        throw new BelfryError('in_progress', `the schedule of job ${jobId} has just been changed: look again`)
      const now = clock.now()
      const made = newBackfill(newJobId(job.shard, now, random), job, asked, plan, { by, now })
      await putBackfill(tx, made)
      const { id: backfillId, concurrency } = made
      await record(tx, made, 'backfill', by, now, { backfillId, ...rangeOf(plan), count: plan.count, concurrency })
      return made
    })
    wakeups.backfill(job.jobId)
    return { ...backfillView(backfill), notes: plan.notes }
  }

  /** No more runs of it. Those that nobody performs yet go, performed ones are asked to stop. Again: the same answer. */
  async cancel(backfillId: string, by: string): Promise<BackfillView> {
    const { db, clock, wakeups } = this.#deps
    const known = await readBackfill(db, null, backfillId)
    if (known === null) throw noSuchBackfill(backfillId)
    const { backfill, asked } = await db.callers.transactionOn([jobRow(known.jobId)], async (tx) => {
      await lockTimer(tx, known.shard, known.jobId)
      const locked = await lockBackfill(tx, known.shard, known.id)
      if (!locked) throw noSuchBackfill(backfillId)
      return this.#cancel(tx, locked, by, clock.now())
    })
    if (backfill.status === BACKFILL_STATUS.completed)
      throw new BelfryError('already_finished', `backfill ${backfillId} has finished already`)
    for (const nominalAt of asked) wakeups.cancel(backfill.jobId, nominalAt)
    return backfillView(backfill)
  }

  async #cancel(
    tx: Transaction,
    locked: Backfill,
    by: string,
    now: Instant,
  ): Promise<{ backfill: Backfill; asked: Instant[] }> {
    if (locked.status !== BACKFILL_STATUS.running) return { backfill: locked, asked: [] }
    const asked: Instant[] = []
    const graceMs = this.#deps.cancelGraceMs
    const before = await readOpenRuns(tx, locked)
    for (const { nominalAt, isAlive } of before) {
      if (!isAlive) continue
      const run = { shard: locked.shard, jobId: locked.jobId, nominalAt }
      asked.push(...(await stopLive(tx, run, { now, graceMs, leased: 'ask' })).asked)
    }
    const open = await readOpenRuns(tx, locked)
    const alive = open.filter(({ isAlive }) => isAlive)
    const settled = await settleRuns(
      tx,
      locked,
      open.filter(({ isAlive }) => !isAlive),
    )
    // All that was asked for has been done, and only nobody has said so yet.
    const isComplete = locked.position >= locked.to && !before.some(({ isAlive }) => isAlive)
    const status = isComplete ? BACKFILL_STATUS.completed : BACKFILL_STATUS.canceled
    const backfill = { ...settled, status, endedAt: alive.length === 0 ? now : null }
    await writeBackfill(tx, backfill)
    if (!isComplete) await record(tx, backfill, 'cancel_backfill', by, now, { backfillId: backfill.id })
    return { backfill, asked }
  }

  async #plan(jobId: string, asked: UnderstoodBackfill): Promise<{ job: JobToBackfill; plan: BackfillPlan }> {
    const { db, clock, schedules, historyDays } = this.#deps
    const job = await readJobToBackfill(db, jobId)
    const { schedule } = await schedules.mustGet(job)
    const knownSince = traceableSince(job.jobId, clock.now(), historyDays)
    return { job, plan: await planBackfill(db, job, schedule, asked, knownSince) }
  }
}

/** A slip of the pen must not start a year of runs. */
function mustBeMeant({ count, notes }: BackfillPlan, { confirmCount }: UnderstoodBackfill): void {
  if (count === 0) throw refuse('from', `there is nothing to run. ${notes.join(' ')}`)
  if (confirmCount !== null && confirmCount !== count)
    throw refuse('confirmCount', `is ${inWords(confirmCount)}, but it would be ${inWords(count)} runs: look again`)
  if (count > UNCONFIRMED && confirmCount === null)
    throw refuse('confirmCount', `must be ${count}: more than ${inWords(UNCONFIRMED)} runs want to be confirmed`)
}

function newBackfill(
  id: string,
  { shard, jobId, tenantId, scheduleId }: JobToBackfill,
  { concurrency }: UnderstoodBackfill,
  { from, to, count, leftOut }: BackfillPlan,
  { by, now }: { by: string; now: Instant },
): Backfill {
  return {
    shard,
    id,
    jobId,
    tenantId,
    status: BACKFILL_STATUS.running,
    from,
    to,
    position: from,
    scheduleId,
    concurrency,
    createdAt: now,
    createdBy: by,
    endedAt: null,
    counts: { total: count + leftOut, created: 0, leftOut: 0, succeeded: 0, failed: 0, canceled: 0 },
  }
}

const record = (
  tx: Transaction,
  { tenantId, jobId }: Backfill,
  action: string,
  actor: string,
  at: Instant,
  after: object,
) => recordChange(tx, { tenantId, subject: 'job', subjectId: jobId, action, actor, after, at })

const datesOf = (times: readonly Instant[]): Date[] => times.map((at) => new Date(at))
const rangeOf = ({ from, to }: BackfillPlan) => ({ from: new Date(from).toISOString(), to: new Date(to).toISOString() })

export const noSuchBackfill = (id: string): BelfryError =>
  new BelfryError('not_found', `there is no backfill ${String(id).slice(0, 100)}`)
