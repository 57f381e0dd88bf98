import { type HttpView, shownHttp } from '../intake/http-input.ts'
import { onceInput, type ScheduleView, scheduleInput } from '../intake/schedule-input.ts'
import type { OnParentFailure, Wanted } from '../job/after.ts'
import {
  type After,
  type ConcurrencyLimit,
  DEFAULT_PRIORITY,
  type Definition,
  type RateLimit,
  type RetryPolicy,
  type UniqueKey,
  usualTimeoutMs,
} from '../job/definition.ts'
import { createdAtOf, runIdOf } from '../job/ids.ts'
import { type FailureClass, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { formatDuration } from '../schedule/duration.ts'
import type { JobRow, JobViewStatus } from './job-places.sql.ts'
import { dateOf, type FinalStatus, failureClassOf, finalStatusOf } from './run-view.ts'

export interface LastRun {
  id: string
  status: FinalStatus
  /** The number of its last attempt. */
  attempt: number
  finishedAt: Date
  failureClass: FailureClass | null
  error: string | null
}

/** What a job waits for. */
export interface AfterView {
  jobs: string[]
  /** Of a job that closes a batch: it waits for all jobs of that. */
  batchId?: string
  on: Wanted
  onParentFailure: OnParentFailure
}

export interface JobView {
  jobId: string
  tenant: string
  name: string | null
  status: JobViewStatus
  /** As it could be sent again: `{ runAt }` for a one-off with a time of its own; null for one that was to run at once. */
  schedule: ScheduleView | null
  /** The jobs that it waits for, or follows; null: it waits for none. */
  after: AfterView | null
  /** The batch that it was created in. */
  batchId: string | null
  /** The call to make, as it was written; null for work that workers do. */
  http: HttpView | null
  queue: string
  priority: number
  /** How many of its runs, or of all that share the key, may be performed at a time; null: any. */
  concurrency: { limit: number; key: string | null; onLimit: 'wait' | 'skip' | 'cancel_oldest' } | null
  /** How many may start in a period; null: any. */
  rateLimit: { limit: number; period: string; burst: number; cost: number; key: string | null } | null
  payload: unknown
  payloadRef: string | null
  labels: Record<string, string>
  /** While it is there, no other job is made under this key. */
  unique: UniqueKey | null
  retry: RetryPolicy | null
  timeoutMs: number
  /** The nominal time to come; of a one-off that has become a run, when that may start. Null while paused or running. */
  nextRunAt: Date | null
  /** The last run that has ended. */
  lastRun: LastRun | null
  version: number
  createdAt: Date
  /** An API key's prefix, or a program. */
  createdBy: string | null
  updatedAt: Date
  pausedAt: Date | null
  pausedReason: string | null
  /** Who paused it; null: it is not, or that was not written down then. */
  pausedBy: string | null
}

/** A one-off that is due within this time of its creation was to run at once. */
const AT_ONCE_MS = 1_000

const concurrencyViewOf = ({ limit, key, onLimit }: ConcurrencyLimit): JobView['concurrency'] => ({
  ...{ limit, key: key ?? null, onLimit: onLimit ?? 'wait' },
})

const rateViewOf = ({ limit, periodMs, burst, cost, key }: RateLimit): JobView['rateLimit'] => ({
  ...{ limit, period: formatDuration({ kind: 'clock', ms: periodMs }), burst: burst ?? limit, cost: cost ?? 1 },
  key: key ?? null,
})

export function jobViewOf(row: JobRow): JobView {
  const { jobId, tenant, status, name, version, updatedAt, pausedAt, pausedReason, pausedBy } = row
  const definition = JSON.parse(row.definition) as Partial<Definition>
  return {
    jobId,
    tenant: tenant ?? '',
    name: name ?? definition.name ?? null,
    status,
    schedule: scheduleOf(row, definition),
    after: definition.after === undefined ? null : afterViewOf(definition.after),
    batchId: definition.batchId ?? null,
    http: definition.http === undefined ? null : shownHttp(definition.http),
    queue: definition.queue ?? 'default',
    priority: definition.priority ?? DEFAULT_PRIORITY,
    concurrency: definition.concurrency === undefined ? null : concurrencyViewOf(definition.concurrency),
    rateLimit: definition.rateLimit === undefined ? null : rateViewOf(definition.rateLimit),
    payload: definition.payload ?? null,
    payloadRef: definition.payloadRef ?? null,
    labels: definition.labels ?? {},
    unique: definition.unique ?? null,
    retry: definition.retry ?? null,
    timeoutMs: definition.timeoutMs ?? usualTimeoutMs(definition),
    nextRunAt: dateOf(nextRunAtOf(row)),
    lastRun: lastRunOf(row),
    version,
    createdAt: new Date(createdAtOf(jobId)),
    createdBy: definition.createdBy ?? null,
    updatedAt: new Date(updatedAt),
    pausedAt: dateOf(pausedAt),
    pausedReason,
    pausedBy,
  }
}

function afterViewOf({ jobs, batch, on, onParentFailure }: After): AfterView {
  const wanted = { on: on ?? 'success', onParentFailure: onParentFailure ?? 'cancel' } as const
  return batch === undefined ? { jobs: [...jobs], ...wanted } : { jobs: [...jobs], batchId: batch, ...wanted }
}

function scheduleOf(row: JobRow, definition: Partial<Definition>): JobView['schedule'] {
  if (definition.after !== undefined) return null
  const { schedule } = definition
  if (schedule !== undefined) return scheduleInput({ ...definition, schedule })
  const at = onceAtOf(row, definition)
  return at === null ? null : onceInput(new Date(at), definition.when)
}

/** The time of a one-off; null if it was to run at once. */
export function onceAtOf(row: JobRow, definition: Partial<Definition>): Instant | null {
  const nominalAt = row.timerNominalAt ?? row.runNominalAt ?? row.lastNominalAt
  if (!row.isOneOff || nominalAt === null) return null
  const waited = nominalAt - createdAtOf(row.jobId)
  return definition.when === undefined && waited >= 0 && waited < AT_ONCE_MS ? null : nominalAt
}

function nextRunAtOf({ timerNominalAt, timerDueAt, runDueAt, runState, isOneOff }: JobRow): Instant | null {
  if (timerDueAt !== null) return Number.isFinite(timerDueAt) ? timerNominalAt : null
  const hasTime = runState !== null && runState !== RUN_STATE.leased && runState !== RUN_STATE.dependent
  return isOneOff && hasTime ? runDueAt : null
}

function lastRunOf(row: JobRow): LastRun | null {
  const { lastNominalAt, lastOutcome, lastFailureClass, lastFinishedAt } = row
  if (lastNominalAt === null || lastOutcome === null || lastFinishedAt === null) return null
  return {
    id: runIdOf(row.jobId, lastNominalAt),
    status: finalStatusOf(lastOutcome),
    attempt: row.lastAttempt ?? 0,
    finishedAt: new Date(lastFinishedAt),
    failureClass: failureClassOf(lastFailureClass),
    error: row.lastError,
  }
}
