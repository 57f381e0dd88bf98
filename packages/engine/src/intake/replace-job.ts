import { recordChange } from '../audit/record-change.sql.ts'
import type { Definition } from '../job/definition.ts'
import { deliveryOf, fairnessKeyOf, limitKeyOf, limitNameOf } from '../job/flow-keys.ts'
import { shardOfJob } from '../job/ids.ts'
import { type DecideDeps, decideJob } from '../promotion/decide-job.sql.ts'
import { putSkips } from '../promotion/put-skips.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { isLockTimeout } from '../store/database-errors.ts'
import { type LockedTimer, lockTimer, writeTimer } from '../timers/lock-timer.sql.ts'
import type { Refused, Replacement } from './claim-unique.ts'
import { JOB_STATUS, type JobRow, lockJob, raiseVersionOfRuns, writeJob } from './job-row.sql.ts'
import { keepOrigin } from './keep-origin.ts'
import { stillUnderWay } from './keys.sql.ts'
import { movePayloadUse } from './move-payload-use.ts'
import type { Prepared } from './put-prepared.ts'
import { type ReplanUpdatedDeps, replanUpdated } from './replan-updated.ts'
import { putTimerAnew, takeBackRun } from './take-back-run.sql.ts'

export interface ReplaceDeps extends DecideDeps, ReplanUpdatedDeps {}

/**
 * Makes a job that has not started what another was to be: its definition, payload and time, under the id that it has. A one-off
 * that waits to be started becomes a timer again; the time that it was meant for, come or not, is a skip then. Runs that were
 * triggered stay. A recurring job is changed as by an update: what was due has been decided under the old definition.
 * `moved`: it has started meanwhile, or is over.
 */
export async function replaceJob(
  tx: Queryable,
  deps: ReplaceDeps,
  jobId: string,
  item: Prepared,
  now: Instant,
): Promise<Replacement | Refused | 'moved'> {
  try {
    return await replace(tx, deps, jobId, item, now)
  } catch (error) {
    throw isLockTimeout(error) ? stillUnderWay(error) : error
  }
}

async function replace(
  tx: Queryable,
  deps: ReplaceDeps,
  jobId: string,
  { understood: said, job: wanted }: Prepared,
  now: Instant,
): Promise<Replacement | Refused | 'moved'> {
  const locked = await lockTimer(tx, shardOfJob(jobId), jobId)
  const job = await lockJob(tx, jobId)
  if (!job) return 'moved'
  const before = JSON.parse(job.definitionJson) as Definition
  const understood = keepOrigin(said, before)
  const { definition, definitionJson } = understood
  const refused = whyNot(job, before, definition, wanted.kind === 'recurring' ? 'recurring' : 'one-off')
  if (refused !== null) return { refused }
  const decided =
    locked && job.status === JOB_STATUS.active
      ? await decideJob(tx, deps, locked, now, 'nominal')
      : { timer: locked, ready: [], asked: [] }
  const timer = decided.timer ?? (await planAnew(tx, job, now))
  if (timer === null) return 'moved'
  const next: JobRow = { ...job, version: job.version + 1, definitionJson }
  await writeJob(tx, next, now)
  // Of a one-off those that were triggered: they stay, and perform what it is now.
  await raiseVersionOfRuns(tx, next)
  const planned = await replanUpdated(tx, deps, {
    job,
    understood,
    now,
    timer: {
      ...timer,
      jobVersion: next.version,
      queueId: wanted.queueId,
      timeoutMs: understood.timeoutMs,
      priority: understood.priority,
      delivery: deliveryOf(definition),
      fairnessKey: fairnessKeyOf(definition),
      limitKey: limitKeyOf(definition, job.tenantId, jobId),
    },
  })
  await writeTimer(tx, planned)
  if (job.oneOff) await skipFormerTime(tx, job, { before: timer.nominalAt, after: planned.nominalAt, now })
  await movePayloadUse(tx, job, definition, Number.isFinite(planned.dueAt) ? planned.dueAt : now)
  const after = JSON.parse(definitionJson) as Definition
  await recordChange(tx, {
    ...{ tenantId: job.tenantId, subject: 'job', subjectId: jobId, action: 'replace', before, after, at: now },
    actor: said.definition.createdBy ?? 'library',
  })
  const { ready, asked } = decided
  return { nominalAt: planned.nominalAt ?? planned.dueAt, dueAt: planned.dueAt, ready, asked }
}

/** A one-off that waits to be started has no timer: it gets one again, which the caller writes. Null: it has started. */
async function planAnew(tx: Queryable, job: JobRow, now: Instant): Promise<LockedTimer | null> {
  const taken = job.oneOff ? await takeBackRun(tx, job) : null
  if (taken === null) return null
  await putTimerAnew(tx, job, taken, now)
  return lockTimer(tx, job.shard, job.jobId)
}

/** The time that a one-off was meant for, which may still have been ahead, does not vanish. */
async function skipFormerTime(
  tx: Queryable,
  job: JobRow,
  { before, after, now }: { before: Instant | null; after: Instant | null; now: Instant },
): Promise<void> {
  if (before === null || before === after) return
  const skip = { from: before, to: before + 1, reason: 'superseded' as const, count: 1 }
  await putSkips(tx, { ...job, jobVersion: job.version }, [skip], now)
}

function whyNot(job: JobRow, before: Definition, after: Definition, kind: 'recurring' | 'one-off'): string | null {
  if (job.oneOff !== (kind === 'one-off'))
    return kind === 'one-off' ? 'a recurring job cannot become a one-off' : 'a one-off cannot become recurring'
  if ((before.name ?? null) !== (after.name ?? null)) return 'a job that replaces another has its name'
  if (before.after !== undefined || after.after !== undefined) return 'a job that waits for others is not replaced'
  const limit = limitNameOf(after)
  // The key of a limit decides the shard, which stands in the id.
  if (limit !== null && limit !== limitNameOf(before)) return 'a job that replaces another has its concurrency key'
  return null
}
