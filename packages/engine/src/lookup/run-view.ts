import type { ParentRun } from '../dependencies/parent-runs.sql.ts'
import type { WaitsFor } from '../dependencies/waits-for.sql.ts'
import type { ResponseRecord } from '../executors/http/response-record.ts'
import {
  CAUSE,
  type Cause,
  FAILURE_CLASS,
  type FailureClass,
  nameOf,
  OUTCOME,
  type Outcome,
  RUN_STATE,
} from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'

const LIVE_STATUSES = ['waiting', 'blocked', 'ready', 'running'] as const
const FINAL_STATUSES = ['succeeded', 'failed', 'canceled', 'lost', 'skipped'] as const
export const RUN_STATUSES = [...LIVE_STATUSES, ...FINAL_STATUSES] as const

export const FAILURE_CLASSES = Object.keys(FAILURE_CLASS)

export type FinalStatus = (typeof FINAL_STATUSES)[number]
export type RunStatus = (typeof RUN_STATUSES)[number]

/** A run as lists show it. */
export interface RunSummary {
  id: string
  jobId: string
  tenant: string
  nominalAt: Date
  /** When it may start; of a run that is over, when its last attempt might. */
  dueAt: Date
  status: RunStatus
  /** The number of its latest attempt: 0 before the first. */
  attempt: number
  failures: number
  queue: string
  cause: Cause | null
  jobVersion: number
  result: unknown
  progress: unknown
  /** Of the last attempt that has ended. */
  failureClass: FailureClass | null
  error: string | null
  finishedAt: Date | null
}

export interface AttemptView {
  /** The row of an end without a lease (`leasedAt` is null) has 0 if there was no attempt, else the number after the last one. */
  number: number
  counted: boolean
  status: Outcome | 'unknown'
  failureClass: FailureClass | null
  error: string | null
  statusCode: number | null
  /** A number of 64 bits, in decimal. */
  holder: string | null
  leasedAt: Date | null
  startedAt: Date | null
  finishedAt: Date
  durationMs: number | null
  /** What an HTTP target answered: headers, the first 4 KiB of the body, timings. */
  response: ResponseRecord | null
}

/** The limit that a run waits for. */
export interface LimitedBy {
  /** What jobs call it; null: it is the job's own. */
  key: string | null
  /** How many may be performed at a time; null: only their rate is limited. */
  limit: number | null
  /** How many may start in a period; null: any. */
  rate: { limit: number; periodMs: number } | null
  /** Runs that hold its slots: a few, the oldest first. */
  heldBy: string[]
}

export interface RunView extends RunSummary {
  cancelRequested: boolean
  leaseUntil: Date | null
  /** The run of the same job that a blocked one waits for; the oldest of several. Null: none, so it is woken in a moment. */
  blockedBy: string | null
  /** What it was triggered with; others are performed with their job's. */
  payload?: unknown
  /** Of a run that a backfill made. */
  backfillId?: string
  /** Of a job that waits for others: how those ended. */
  parents?: ParentRun[]
  /** Of a run that still waits for others. */
  waitsFor?: WaitsFor
  /** Of a run that waits for a slot of its key, or for its rate. */
  limitedBy?: LimitedBy
  /** Those that have ended, oldest first; of very many, the last thousand. */
  attempts: AttemptView[]
}

/** An attempt that has ended, as history has it. */
export interface PastAttempt {
  number: number
  counted: boolean
  final: boolean
  outcome: number
  failureClass: number | null
  error: string | null
  statusCode: number | null
  holder: string | null
  leasedAt: Instant | null
  startedAt: Instant | null
  finishedAt: Instant
}

export const isFailure = ({ counted, outcome }: PastAttempt): boolean =>
  counted && (outcome === OUTCOME.failed || outcome === OUTCOME.lost)

export function attemptViewOf(attempt: PastAttempt): Omit<AttemptView, 'response'> {
  const { number, counted, outcome, failureClass, error, statusCode, holder } = attempt
  const { leasedAt, startedAt, finishedAt } = attempt
  return {
    number,
    counted,
    status: nameOf(OUTCOME, outcome) ?? 'unknown',
    failureClass: failureClassOf(failureClass),
    error,
    statusCode,
    holder,
    leasedAt: dateOf(leasedAt),
    startedAt: dateOf(startedAt),
    finishedAt: new Date(finishedAt),
    durationMs: startedAt === null ? null : finishedAt - startedAt,
  }
}

export const dateOf = (instant: Instant | null): Date | null =>
  instant === null || !Number.isFinite(instant) ? null : new Date(instant)

/** The number of the last attempt by then. */
export const attemptOf = ({ number, leasedAt }: { number: number; leasedAt: Date | Instant | null }): number =>
  leasedAt === null ? Math.max(0, number - 1) : number

export const failureClassOf = (value: number | null): FailureClass | null =>
  value === null ? null : (nameOf(FAILURE_CLASS, value) ?? null)

export const causeOf = (value: number): Cause | null => nameOf(CAUSE, value) ?? null

export function finalStatusOf(outcome: number): FinalStatus {
  const name = nameOf(OUTCOME, outcome)
  return FINAL_STATUSES.find((status) => status === name) ?? 'failed'
}

/** It waits for another run, a slot or another job. */
const BLOCKED_STATES: readonly number[] = [RUN_STATE.blocked, RUN_STATE.limited, RUN_STATE.dependent]

export function liveStatusOf(state: number): RunStatus {
  if (state === RUN_STATE.leased) return 'running'
  if (BLOCKED_STATES.includes(state)) return 'blocked'
  const name = nameOf(RUN_STATE, state)
  return LIVE_STATUSES.find((status) => status === name) ?? 'waiting'
}

/** The states in `runs` that a status stands for; null for the status of a run that is over. */
export function statesOf(status: RunStatus): readonly number[] | null {
  if (status === 'running') return [RUN_STATE.leased]
  if (status === 'blocked') return BLOCKED_STATES
  return status === 'waiting' || status === 'ready' ? [RUN_STATE[status]] : null
}

export function outcomeOf(status: RunStatus): number | null {
  const final = FINAL_STATUSES.find((one) => one === status)
  return final === undefined ? null : OUTCOME[final]
}
