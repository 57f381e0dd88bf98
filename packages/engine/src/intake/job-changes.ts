import { recordCanceledOneOff, wasCanceled } from '../attempts/cancel-runs.sql.ts'
import { putRunPayload } from '../attempts/run-payloads.sql.ts'
import { recordChange } from '../audit/record-change.sql.ts'
import { deleteEdgesOf } from '../dependencies/delete-edges-of.sql.ts'
import { BelfryError } from '../errors.ts'
import type { Definition } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf } from '../job/flow-keys.ts'
import { createdAtOf, runIdOf, shardOfJob, shardOfKey } from '../job/ids.ts'
import { CAUSE, OVERLAP } from '../job/states.ts'
import { type DecideDeps, decideJob, isAlive, readyRunOf } from '../promotion/decide-job.sql.ts'
import { dueOf } from '../promotion/due.ts'
import { meetLive } from '../promotion/meet-live.sql.ts'
import { skipUndecided } from '../promotion/skip-undecided.ts'
import { type Canceled, canceledOf, stopLive } from '../promotion/stop-live.ts'
import { insertBlockedRuns, insertReadyRuns } from '../ready/insert-runs.sql.ts'
import type { MadeReady as Announced } from '../ready/woken.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database, Transaction } from '../store/database.ts'
import { jobRow, type LockedTimer, lockTimer, NEVER_DUE, removeTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import { changeLimit, mustKeepKey } from './change-limit.ts'
import {
  checkedJobId,
  deleteJob,
  JOB_STATUS,
  type JobRow,
  lockJob,
  noSuchJob,
  raiseVersionOfRuns,
  writeJob,
} from './job-row.sql.ts'
import { keepOrigin } from './keep-origin.ts'
import { freeName, holderOfName } from './keys.sql.ts'
import { movePayloadUse } from './move-payload-use.ts'
import { mustHaveFuture } from './must-have-future.sql.ts'
import { mustKeepUnique } from './must-keep-unique.ts'
import { overlaps } from './overlaps.ts'
import { withoutPauser, withPauser } from './paused-by.ts'
import { type ReplanUpdatedDeps, replanUpdated } from './replan-updated.ts'
import { isChain, mustMissNothing, timeBesideChain, triggerDependent } from './trigger-dependent.ts'
import type { UnderstoodJob } from './understand-job.ts'
import { AS_THE_JOB_SAYS, mustTakePayload, type UnderstoodTrigger } from './understand-trigger.ts'

export interface JobChangesDeps extends DecideDeps, ReplanUpdatedDeps {
  db: Database
  clock: Clock
  wakeups: Wakeups
  shards: number
  cancelGraceMs: number
}

/** What becomes of the nominal times that fell into a pause. */
export type Missed = 'skip' | 'catch_up'

export interface Triggered {
  runId: string
  /** Blocked: it waits until the run that is alive has ended. */
  status: 'ready' | 'blocked'
}

export type JobStatus = 'active' | 'paused' | 'completed' | 'canceled'

interface Locked {
  job: JobRow
  timer: LockedTimer | null
  ready: Announced[]
  /** Nominal times of runs that were asked to stop because others came. */
  asked: Instant[]
  /** Writes the change down in its own transaction. */
  record(action: string, before: unknown, after: unknown): Promise<void>
  /** Timers that others should know of after the commit. */
  wake: [shard: number, dueAt: Instant][]
  now: Instant
}

const STATUS_NAMES: readonly JobStatus[] = ['active', 'paused', 'completed', 'canceled']

const statusOf = ({ status, pauseReason }: JobRow) => ({ status: STATUS_NAMES[status], reason: pauseReason })

/**
 * Changes of jobs that exist. Each is one transaction that takes the timer first (it is the job's lock), decides under the
 * old definition every nominal time up to its own instant, and only then changes anything; so no pending time is lost or
 * doubled by an edit. Each writes down who did it (`by`); what changes nothing leaves no row.
 */
export class JobChanges {
  readonly #deps: JobChangesDeps

  constructor(deps: JobChangesDeps) {
    this.#deps = deps
  }

  async pause(jobId: string, reason: string | null, by: string): Promise<{ status: JobStatus }> {
    return this.#change(jobId, by, async (tx, { job, timer, record, now }) => {
      const active = await mustHaveFuture(tx, job, timer)
      if (job.status === JOB_STATUS.paused) {
        const both = { ...job, pausedBy: withPauser(job.pausedBy, by), pauseReason: reason ?? job.pauseReason }
        if (both.pausedBy === job.pausedBy) return { status: 'paused' }
        await writeJob(tx, both, now)
        await record('pause', statusOf(job), statusOf(both))
        return { status: 'paused' }
      }
      if (active.scheduleId !== null && active.nominalAt !== null && active.nominalAt <= now)
        throw new BelfryError('in_progress', `job ${jobId} is still making up for missed times: try again`)
      await writeTimer(tx, { ...active, dueAt: NEVER_DUE })
      await writeJob(tx, { ...job, status: JOB_STATUS.paused, pauseReason: reason, pausedBy: by }, now)
      await record('pause', statusOf(job), { status: 'paused', reason })
      return { status: 'paused' }
    })
  }

  /** From now on, and what fell into the pause is one skip; or that is made up for as after an outage. */
  async resume(jobId: string, by: string, missed: Missed = 'skip'): Promise<{ status: JobStatus }> {
    return this.#change(jobId, by, async (tx, locked) => {
      const { job, timer, record, wake, now } = locked
      const paused = await mustHaveFuture(tx, job, timer)
      if (job.status !== JOB_STATUS.paused) return { status: 'active' }
      const pausedBy = withoutPauser(`job ${jobId}`, job.pausedBy, by)
      if (pausedBy !== null) {
        await writeJob(tx, { ...job, pausedBy }, now)
        return { status: 'paused' }
      }
      if (missed !== 'skip') mustMissNothing(job)
      await writeJob(tx, { ...job, status: JOB_STATUS.active, pauseReason: null }, now)
      if (paused.scheduleId === null || paused.nominalAt === null) {
        // A job that follows others has no time of its own.
        const dueAt = isChain(job) ? NEVER_DUE : Math.max(now, paused.nominalAt ?? now)
        await writeTimer(tx, { ...paused, dueAt })
        await record('resume', statusOf(job), { status: 'active', reason: null })
        if (dueAt !== NEVER_DUE) wake.push([paused.shard, dueAt])
        return { status: 'active' }
      }
      const { schedule } = await this.#scheduleOf(paused)
      // One whose calendar leaves it no time waits for an instant that is none of its schedule.
      const hasTimes = schedule.next(paused.nominalAt - 1) !== null
      const status =
        missed === 'skip' || !hasTimes
          ? await this.#resumeFromNow(tx, { job, timer: paused, wake, now })
          : await this.#resumeWithMissed(tx, { ...locked, timer: paused })
      await record('resume', statusOf(job), { status, reason: null, ...(missed === 'skip' ? {} : { missed }) })
      return { status }
    })
  }

  async #resumeWithMissed(
    tx: Transaction,
    { timer: paused, ready, asked, wake, now }: Locked & { timer: LockedTimer },
  ): Promise<JobStatus> {
    const decided = await decideJob(tx, this.#deps, paused, now, 'due')
    ready.push(...decided.ready)
    asked.push(...decided.asked)
    if (decided.timer === null) return 'completed'
    wake.push([paused.shard, decided.timer.dueAt])
    return 'active'
  }

  async #resumeFromNow(
    tx: Transaction,
    { job, timer: paused, wake, now }: Omit<Locked, 'ready' | 'asked' | 'record'> & { timer: LockedTimer },
  ): Promise<JobStatus> {
    const known = await this.#scheduleOf(paused)
    const from = paused.nominalAt as Instant
    const next = known.schedule.next(Math.max(now, from - 1))
    await skipUndecided(tx, paused, known.schedule, { reason: 'paused', until: now, now })
    if (next === null) {
      await removeTimer(tx, paused.shard, paused.jobId)
      await writeJob(tx, { ...job, status: JOB_STATUS.completed, pauseReason: null }, now)
      return 'completed'
    }
    const decidedUntil =
      from > now ? paused.decidedUntil : (known.schedule.latest(now, from - 1) ?? paused.decidedUntil)
    const dueAt = Math.max(now, dueOf(next, paused.jitterMs, known.schedule))
    await writeTimer(tx, { ...paused, nominalAt: next, decidedUntil, dueAt })
    wake.push([paused.shard, dueAt])
    return 'active'
  }

  /**
   * No more runs. Those that nobody performs yet go; performed ones are asked to stop, unless they may finish. Again: the same answer,
   * until the last of them has ended.
   */
  async cancel(jobId: string, running: 'cancel' | 'finish', by: string): Promise<Canceled> {
    const { cancelGraceMs, wakeups } = this.#deps
    const { status, asked } = await this.#change(jobId, by, async (tx, { job, timer, ready, record, now }) => {
      if (timer) await this.#giveUp(tx, { job, timer, now })
      const at = { now, graceMs: cancelGraceMs, leased: running === 'cancel' ? 'ask' : 'leave' } as const
      const stopped = await stopLive(tx, { ...job, nominalAt: null }, at)
      const { removed, asked, leased } = stopped
      const answer = { ...canceledOf(stopped), asked }
      if (job.oneOff && !timer && removed.length + leased.length === 0) {
        // Canceled again: the same answer.
        if (await wasCanceled(tx, job, createdAtOf(job.jobId) - DAY_MS)) return answer
        throw new BelfryError('already_finished', `job ${jobId} has finished already`)
      }
      ready.length = 0
      const isOpen = !job.oneOff && job.status !== JOB_STATUS.canceled
      // How a one-off ended is told by its history; what it keeps must not say that it is still paused.
      if (isOpen || job.status === JOB_STATUS.paused)
        await writeJob(tx, { ...job, status: JOB_STATUS.canceled, pauseReason: null }, now)
      const hadName = await this.#hasName(tx, job)
      await this.#freeName(tx, job)
      const isNewlyAsked = running === 'cancel' && leased.some(({ isAsked }) => !isAsked)
      if (isOpen || timer !== null || isNewlyAsked || hadName || removed.length > 0)
        await record('cancel', statusOf(job), { status: 'canceled', running })
      return answer
    })
    for (const nominalAt of asked) wakeups.cancel(jobId, nominalAt)
    this.#deps.wakeups.told()
    return { status }
  }

  /** As cancel, and nobody finds the job any more; its history stays. A one-off whose run is alive is no longer a mere plan. */
  async delete(jobId: string, by: string): Promise<void> {
    const { cancelGraceMs, wakeups } = this.#deps
    const asked = await this.#change(jobId, by, async (tx, { job, timer, ready, record, now }) => {
      if (job.oneOff && !timer && (await isAlive(tx, job.shard, job.jobId)))
        throw new BelfryError('already_due', `job ${jobId} has become a run: cancel it`)
      if (timer) await this.#giveUp(tx, { job, timer, now })
      const at = { now, graceMs: cancelGraceMs, leased: 'ask' as const }
      const canceled = await stopLive(tx, { ...job, nominalAt: null }, at)
      ready.length = 0
      await deleteJob(tx, job)
      await deleteEdgesOf(tx, job, now)
      await this.#freeName(tx, job)
      await record('delete', JSON.parse(job.definitionJson), undefined)
      return canceled.asked
    })
    for (const nominalAt of asked) wakeups.cancel(jobId, nominalAt)
    this.#deps.wakeups.told()
  }

  /** The job has no future any more, and what it did not decide is not forgotten with it. */
  async #giveUp(
    tx: Transaction,
    { job, timer, now }: { job: JobRow; timer: LockedTimer; now: Instant },
  ): Promise<void> {
    await removeTimer(tx, job.shard, job.jobId)
    if (job.oneOff) await recordCanceledOneOff(tx, timer, now)
    if (timer.scheduleId === null || timer.nominalAt === null || timer.nominalAt > now) return
    const { schedule } = await this.#scheduleOf(timer)
    const reason = job.status === JOB_STATUS.paused ? 'paused' : 'superseded'
    await skipUndecided(tx, timer, schedule, { reason, until: now, now })
  }

  async #hasName(tx: Transaction, { tenantId, name, jobId }: JobRow): Promise<boolean> {
    if (name === null) return false
    const key = { shard: shardOfKey(tenantId, name, this.#deps.shards), tenantId, key: name }
    return (await holderOfName(tx, key)) === jobId
  }

  async #freeName(tx: Transaction, { tenantId, name, jobId }: JobRow): Promise<void> {
    if (name === null) return
    await freeName(tx, { shard: shardOfKey(tenantId, name, this.#deps.shards), tenantId, key: name, jobId })
  }

  /** One run now, beside the schedule. Its nominal time is its own: never one that the schedule has. So may its payload be. */
  async trigger(
    jobId: string,
    by: string,
    { payloadJson, overlap }: UnderstoodTrigger = AS_THE_JOB_SAYS,
  ): Promise<Triggered> {
    return this.#change(
      jobId,
      by,
      async (tx, { job, timer, ready, asked, record, now }) => {
        const how = { payloadJson, overlap }
        const waiting = timer === null ? await triggerDependent(tx, job, how, { ...this.#deps, now }) : null
        if (waiting !== null) {
          ready.push(waiting)
          await record('trigger', undefined, { runId: waiting.runId })
          return { runId: waiting.runId, status: 'ready' as const }
        }
        const at = await mustHaveFuture(tx, job, timer)
        if (payloadJson !== null) mustTakePayload(JSON.parse(job.definitionJson))
        const known = at.scheduleId === null ? null : await this.#scheduleOf(at)
        let nominalAt = Math.max(now, (at.lastTriggerAt ?? 0) + 1)
        const isScheduled = (time: Instant) => (known ? known.schedule.next(time - 1) : at.nominalAt) === time
        while (isScheduled(nominalAt)) nominalAt++
        if (isChain(job)) nominalAt = await timeBesideChain(tx, job, nominalAt)
        const policy = overlap === null ? at.overlap : OVERLAP[overlap]
        const met = await meetLive(tx, at, policy, [nominalAt], { now, graceMs: this.#deps.cancelGraceMs })
        if (met.skips.length > 0)
          throw overlaps(jobId, policy, overlap === null ? "the job's overlap policy" : 'overlap')
        asked.push(...met.asked)
        const isBlocked = met.blocked.length > 0
        const turn = isBlocked ? 0 : this.#deps.turns.next(now, at)
        const run = {
          ...readyRunOf(at, nominalAt, CAUSE.trigger, turn, now),
          oneOff: job.oneOff || !(known || isChain(job)),
          hasDependents: at.hasDependents && !job.oneOff,
        }
        const born = await (isBlocked ? insertBlockedRuns : insertReadyRuns)(tx, [run])
        if (born.length === 0) throw new BelfryError('overlap', `job ${jobId} has a run of this very moment`)
        if (payloadJson !== null) await putRunPayload(tx, run, payloadJson)
        await writeTimer(tx, { ...at, lastTriggerAt: nominalAt })
        if (isBlocked) this.#deps.wakeups.blocked(jobId)
        else ready.push(run)
        const runId = runIdOf(jobId, nominalAt)
        await record('trigger', undefined, { runId, ...(overlap === null ? {} : { overlap }) })
        return { runId, status: isBlocked ? ('blocked' as const) : ('ready' as const) }
      },
      'decide nothing',
    )
  }

  /** A new version of the definition, unless `merge` answers null: it is as it shall be. What was due under the old one has been decided under it. */
  async update(
    jobId: string,
    merge: (definitionJson: string, nominalAt: Instant | null, version: number) => UnderstoodJob | null,
    queueIdOf: (job: UnderstoodJob, tenantId: number) => Promise<number>,
    by: string,
  ): Promise<{ version: number }> {
    const limits: { shard: number; key: string }[] = []
    const updated = await this.#change(jobId, by, async (tx, { job, timer, record, wake, now }) => {
      const at = await mustHaveFuture(tx, job, timer, 'already_due')
      const before = JSON.parse(job.definitionJson) as Definition
      const wanted = merge(job.definitionJson, at.nominalAt, job.version)
      if (wanted === null) return { version: job.version }
      const understood = keepOrigin(wanted, before)
      mustKeepUnique(before, understood.definition)
      mustKeepKey(before, understood.definition)
      const version = job.version + 1
      const next = { ...job, version, definitionJson: understood.definitionJson }
      await writeJob(tx, next, now)
      await raiseVersionOfRuns(tx, next)
      const common = {
        ...at,
        jobVersion: version,
        queueId: await queueIdOf(understood, job.tenantId),
        timeoutMs: understood.timeoutMs,
        priority: understood.priority,
        delivery: deliveryOf(understood.definition),
        fairnessKey: fairnessKeyOf(understood.definition),
        limitKey: limitKeyOf(understood.definition, job.tenantId, jobId),
      }
      const planned = await replanUpdated(tx, this.#deps, { job, timer: common, understood, now })
      await writeTimer(tx, planned)
      await movePayloadUse(tx, job, understood.definition, Number.isFinite(planned.dueAt) ? planned.dueAt : now)
      await record('update', before, JSON.parse(understood.definitionJson))
      wake.push([planned.shard, planned.dueAt])
      limits.push(...(await changeLimit(tx, job, { before, after: understood.definition }, now)))
      return { version }
    })
    for (const { shard, key } of limits) this.#deps.wakeups.keyChanged(shard, key)
    return updated
  }

  #scheduleOf({ shard, scheduleId }: LockedTimer) {
    return this.#deps.schedules.mustGet({ shard, scheduleId: scheduleId as string })
  }

  async #change<Result>(
    jobId: string,
    by: string,
    work: (tx: Transaction, locked: Locked) => Promise<Result>,
    pending: 'decide' | 'decide nothing' = 'decide',
  ): Promise<Result> {
    const { db, clock, wakeups } = this.#deps
    const id = checkedJobId(jobId)
    const ready: Announced[] = []
    const asked: Instant[] = []
    const wake: [number, Instant][] = []
    const result = await db.callers.transactionOn([jobRow(id)], async (tx) => {
      // It may have to be done twice.
      ready.length = 0
      asked.length = 0
      wake.length = 0
      let timer = await lockTimer(tx, shardOfJob(id), id)
      const job = await lockJob(tx, id)
      if (!job) throw noSuchJob(id)
      const now = clock.now()
      if (pending === 'decide' && timer && job.status === JOB_STATUS.active) {
        const decided = await decideJob(tx, this.#deps, timer, now, 'nominal')
        ready.push(...decided.ready)
        asked.push(...decided.asked)
        timer = decided.timer
      }
      const record = (action: string, before: unknown, after: unknown) =>
        recordChange(tx, {
          tenantId: job.tenantId,
          subject: 'job',
          subjectId: id,
          action,
          actor: by,
          before,
          after,
          at: now,
        })
      return work(tx, { job, timer, ready, asked, record, wake, now })
    })
    for (const run of ready) wakeups.ready(run)
    for (const nominalAt of asked) wakeups.cancel(id, nominalAt)
    for (const [shard, dueAt] of wake) wakeups.timer(shard, dueAt)
    return result
  }
}
