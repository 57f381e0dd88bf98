import type { WaitsFor } from '../dependencies/waits-for.sql.ts'
import type { FailureClass, SkipReason } from '../job/states.ts'
import type { WhyNot } from '../schedule/why-not.ts'
import type { AttemptView, RunSummary } from './run-view.ts'

export type Verdict = 'ran' | 'running' | 'waiting' | 'skipped' | 'will_run' | 'never' | 'unknown'

/** The word behind a verdict that needs one; docs/guides/why-did-it-not-run.md says what each means. */
export type Reason =
  | 'cancel_requested'
  | ('jitter' | 'not_promoted' | 'not_planned' | 'ready' | 'queue_paused' | 'job_paused' | 'circuit_open' | 'blocked')
  | ('backoff' | 'snoozed' | 'released' | 'redriven' | 'queue_limited' | 'origin_limited' | 'key_limited')
  | ('tenant_paused' | 'key_paused' | 'origin_paused')
  | SkipReason
  /** Skipped by `onLimit`: all slots of its key were taken. */
  | 'on_limit'
  | WhyNot['rule']
  | ('max_runs' | 'one_off' | 'not_created' | 'canceled' | 'completed')
  | ('history_expired' | 'nothing_recorded' | 'schedule_unreadable')

/** Somebody's change that is the reason: a pause, a cancel. */
export interface Doer {
  action: string
  /** An API key's prefix, or a program. */
  actor: string
  at: Date
  /** What they gave as reason, if they did. */
  reason: string | null
}

export interface ExplainedRun
  extends Pick<RunSummary, 'id' | 'status' | 'cause' | 'dueAt' | 'attempt' | 'failures'>,
    Pick<RunSummary, 'finishedAt' | 'failureClass' | 'error'> {
  /** How long after its nominal time the first attempt began; null: none has. */
  latenessMs: number | null
  startedAt: Date | null
  attempts: Omit<AttemptView, 'response'>[]
}

/** The pause of a tenant, a key or a target. */
export interface ExplainedPause extends Doer {
  kind: 'tenant' | 'key' | 'origin'
  /** Of the key or origin. */
  name: string | null
}

/** What a run, or a time that is due, waits for. */
export interface Waits {
  queue: string | null
  /** Not before. */
  until: Date | null
  /** Of a ready run: how many of the tenant's own go before it in its queue. */
  ahead: number | null
  /** False: there are more than were counted. */
  isAheadComplete: boolean
  expectedStartAt: Date | null
  /** Why that is not known. */
  expectedStartNote: string | null
  /** The run that must end first. */
  behind: string | null
  /** The jobs that must end first: how many, and a few of them. */
  jobs: WaitsFor | null
  queuePause: Doer | null
  /** The pause of its tenant, its key or its target that keeps it waiting. */
  pause: ExplainedPause | null
  /** What it waits for, if that is the limit of its key, in words. */
  keyLimit: string | null
  /** How the limit of its queue keeps it waiting, in words. */
  queueLimit: string | null
  circuit: { origin: string; until: Date; reason: string } | null
  /** How the attempt before ended. */
  after: { attempt: number; status: string; failureClass: FailureClass | null; error: string | null } | null
}

export interface ExplainedSkip {
  /** Half-open: all nominal times in it were skipped together. */
  from: Date
  to: Date
  /** Null: too many to be counted, or not decided yet. */
  count: number | null
  /** Null: nothing is decided while the job is paused. */
  decidedAt: Date | null
  /** The run that was alive, or the one of a newer time that was decided together with this one. */
  overlappedWith: string | null
}

/** What became of one nominal time of a job, or will. */
export interface Explanation {
  jobId: string
  /** What was asked for. */
  at: Date
  /** The nominal time that this is about; null: there is none at that time. */
  nominalAt: Date | null
  /** The same on the clock of the job's zone, as 2026-03-29T09:00:00+02:00. */
  local: string
  timezone: string
  verdict: Verdict
  reason: Reason | null
  /** All of it in one sentence, for a person. */
  sentence: string
  /** The version of the definition that counted at that time; null: it is not known any more. */
  version: number | null
  /** When it is due, with its jitter: of what will run. */
  dueAt: Date | null
  run: ExplainedRun | null
  waits: Waits | null
  skip: ExplainedSkip | null
  /** Who is behind it, if somebody is. */
  by: Doer | null
  /** The fire times around it, if it is none itself. */
  nearest: { before: Date | null; after: Date | null } | null
}
