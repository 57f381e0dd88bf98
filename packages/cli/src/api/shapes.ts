import type { Limits } from '../limit-fields.ts'

/** When something runs, said back by the server. */
export interface Description {
  understoodAs: string
  expression: string | null
  timezone: string
  times: { utc: string; local: string; dst?: 'gap' | 'repeat' }[]
}

/** What the API answers, as far as the command shows it. More may be there. */
export interface Job {
  jobId: string
  name?: string | null
  status: string
  schedule?: {
    when?: string
    cron?: string | string[]
    every?: string
    timezone?: string
    runAt?: string
  } | null
  queue?: string | null
  http?: { method?: string; url: string } | null
  priority?: number
  labels?: Record<string, string>
  nextRunAt?: string | null
  lastRun?: {
    id: string
    status: string
    finishedAt: string
    failureClass?: string | null
    error?: string | null
  } | null
  version?: number
  createdAt?: string
  updatedAt?: string
  pausedAt?: string | null
  pausedReason?: string | null
}

export interface Queue extends Limits {
  name: string
  kind: string | null
  paused: boolean
  depth: { ready: number; running: number; waiting: number }
}

export interface Origin extends Limits {
  origin: string
}

export interface Pause {
  id: string | null
  kind: string
  name: string | null
  pausedAt: string
  pausedBy: string | null
  reason: string | null
}

export interface Calendar {
  name: string
  dayCount: number
  weekend: string[]
  updatedAt: string
  replanning: boolean
  /** Not in lists. */
  days?: { date: string; name?: string }[]
}

export interface RunSummary {
  id: string
  jobId: string
  nominalAt: string
  dueAt?: string
  status: string
  attempt: number
  failures: number
  queue?: string
  cause?: string | null
  result?: unknown
  failureClass?: string | null
  error?: string | null
  finishedAt?: string | null
}

export interface Attempt {
  number: number
  counted: boolean
  status: string
  failureClass?: string | null
  error?: string | null
  statusCode?: number | null
  startedAt?: string | null
  finishedAt?: string | null
  durationMs?: number | null
  response?: { body?: string; truncated?: boolean } | null
}

export interface Run extends RunSummary {
  attempts: Attempt[]
}

export interface Backfill {
  backfillId: string
  jobId: string
  status: string
  from: string
  to: string
  position: string
  concurrency: number
  counts: {
    total: number
    created: number
    leftOut: number
    running: number
    succeeded: number
    failed: number
    canceled: number
  }
  createdBy: string
  createdAt: string
  endedAt: string | null
}

export interface Batch {
  batchId: string
  name: string | null
  total: number
  open: number
  succeeded: number
  failed: number
  canceled: number
  skipped: number
  progress: number
  onFinishJobId: string | null
  createdAt: string
  createdBy: string | null
  finishedAt: string | null
}

export interface BackfillPreview {
  count: number
  leftOut: number
  times: { first: string[]; last: string[] }
  from: string
  to: string
  notes: string[]
}

export interface DeadLetter {
  runId: string
  jobId: string
  queue?: string
  failureClass?: string | null
  error?: string | null
  diedAt?: string
}

export interface ApiKey {
  id: string
  name: string
  prefix: string
  scopes: string[]
  tenantId?: number
  createdAt?: string
  expiresAt?: string | null
  revokedAt?: string | null
}

export interface Tenant {
  id: number | string
  name: string
  tier?: string
  weight?: number
  quotas?: Record<string, number | null>
  createdAt?: string
}

export interface Worker {
  id: string
  status: string
  queues: string[]
  capacity?: number | null
  version?: string | null
  lastSeenAt?: string
  inFlight: number
}

/** Why a job ran, did not run or will run. */
export interface Explanation {
  at: string
  nominalAt: string | null
  local: string
  timezone: string
  verdict: string
  reason: string | null
  sentence: string
  version: number | null
  dueAt: string | null
  run: { id: string; latenessMs: number | null; attempts: Attempt[] } | null
  by: { action: string; actor: string; at: string } | null
  nearest: { before: string | null; after: string | null } | null
}

export interface ForecastPart {
  name: string
  total: number
  busiest: { at: string; runs: number } | null
}

export interface Forecast {
  from: string
  to: string
  asOf: string
  timers: number
  isComplete: boolean
  total: number
  busiest: { at: string; runs: number; withoutJitter: number }[]
  queues: ForecastPart[]
  origins: ForecastPart[]
}
