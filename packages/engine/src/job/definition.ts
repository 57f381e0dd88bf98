import type { Instant } from '../runtime/clock.ts'
import { type CatchUpPolicy, type Overlap, QUEUE_KIND, type QueueKind } from './states.ts'

/**
 * What an attempt needs to know about its job, as it is stored: once, as JSON. Whatever equals its default is left out,
 * so that the commonest definition is tiny and equal definitions are equal texts.
 */
export interface Definition {
  queue: string
  http?: HttpTarget
  payload?: unknown
  payloadRef?: string
  retry?: RetryPolicy
  timeoutMs?: number
  startDeadlineMs?: number
  delivery?: 'at_most_once'
  labels?: Record<string, string>
  name?: string
  schedule?: ScheduleSpec
  when?: Words
  overlap?: Overlap
  jitterMs?: number
  maxRuns?: number
  priority?: number
  concurrency?: ConcurrencyLimit
  rateLimit?: RateLimit
  /** Runs of a queue that belongs to one tenant take turns by it. */
  fairnessKey?: string
  unique?: UniqueKey
  /** The jobs that it waits for. */
  after?: After
  /** The batch that it was created in. */
  batchId?: string
  /** Who created the job: an API key's prefix, or a program. */
  createdBy?: string
}

/** What a job waits for. Local names of the call that made it have become ids. */
export interface After {
  jobs: readonly string[]
  /** The local names of those that had one, by id. */
  refs?: Readonly<Record<string, string>>
  /** Of a job that closes a batch: it waits for all jobs of that, and names none. */
  batch?: string
  /** Which ends count; default success. */
  on?: 'failure' | 'finish'
  /** When one of them does not succeed; default cancel. */
  onParentFailure?: 'run' | 'block'
}

/** An HTTP call. Texts may hold `{{nominalAt}}`, `{{runId}}`, `{{attempt}}` and `{{secret:name}}`. */
export interface HttpTarget {
  url: string
  /** Default POST. */
  method?: string
  headers?: Record<string, string>
  /** Without it the payload is the body. A text goes as it is, any other JSON value as JSON. */
  body?: { json: unknown } | { text: string } | { base64: string }
  auth?: { tokenUrl: string; clientId: string; clientSecret: string; scope?: string; audience?: string }
  /** Status codes that are judged otherwise than by default, as `404` or `4xx`. */
  succeedOn?: string[]
  retryOn?: string[]
  failOn?: string[]
}

export const DEFAULT_PRIORITY = 5
/** The number of the tenant `default`, which is always there. */
export const DEFAULT_TENANT = 1
const DEFAULT_TIMEOUT_MS = 5 * 60_000
const DEFAULT_HTTP_TIMEOUT_MS = 30_000
export const DEFAULT_OVERLAP: Overlap = 'skip'

/** The queue of HTTP calls that name none: the system's own, shared by all tenants. */
export const HTTP_QUEUE = 'http'

export function queueKindOf({ http }: Pick<Definition, 'http'>): QueueKind {
  return http === undefined ? QUEUE_KIND.worker : QUEUE_KIND.http
}

/** What an attempt may take, unless the definition says so itself. */
export function usualTimeoutMs({ http }: Pick<Definition, 'http'>): number {
  return http === undefined ? DEFAULT_TIMEOUT_MS : DEFAULT_HTTP_TIMEOUT_MS
}

/** How many runs may be leased at a time: of the job, or of all jobs that name the key. */
export interface ConcurrencyLimit {
  key?: string
  limit: number
  /** What happens to a run that finds no free slot, unless it waits. */
  onLimit?: 'skip' | 'cancel_oldest'
}

/** How many runs may start: `limit` in a period, evenly, and up to `burst` at once. */
export interface RateLimit {
  /** The same as that of `concurrency`, if both are there. */
  key?: string
  limit: number
  periodMs: number
  /** Default: as many as `limit`. */
  burst?: number
  /** Default 1: as how many runs one counts. */
  cost?: number
}

/** While a job with this key is there, no other is made under it. */
export interface UniqueKey {
  key: string
  /** Which jobs count: such that have not started, or such that have; without it both, until they have ended. */
  while?: 'queued' | 'active'
  /** What becomes of the new one; without it the one that is there is kept, and is the answer. */
  onConflict?: 'replace' | 'reject'
}

export interface RetryPolicy {
  /** Default 5. Counts the first attempt too; 1 means that nothing is repeated. */
  maxAttempts?: number
  backoff?: Backoff
  /** No attempt starts later than this after the nominal time. */
  maxAgeMs?: number
}

/** `jitter` is the share of the delay that chance may take away: 0 none, 0.5 half, 1 all of it. */
export type Backoff =
  | { type: 'exponential'; initialMs: number; factor: number; maxMs: number; jitter: number }
  | { type: 'linear'; initialMs: number; maxMs: number; jitter: number }
  | { type: 'fixed'; initialMs: number; jitter: number }
  /** The last delay holds for all further failures. */
  | { type: 'list'; delaysMs: readonly number[]; jitter: number }

/** A time as somebody said it in English. What it was understood as stands beside it, and is what counts. */
export interface Words {
  text: string
  /** Of a one-off, unless it is UTC; that of a recurring job stands in its schedule. */
  timezone?: string
  /** Bounds that the words say themselves. */
  says?: readonly ('startAt' | 'endAt' | 'maxRuns')[]
}

/** When a recurring job fires, as somebody asked for it. What is left out has its default. */
export type ScheduleSpec = CronSpec | IntervalSpec

/**
 * A schedule that stands on its own: `H` has become numbers, and calendars the days they hold. Its canonical text is its
 * identity, so millions of jobs share few schedules.
 */
export type ResolvedSpec = CronSpec<ResolvedExclusion> | IntervalSpec<ResolvedExclusion>

interface Recurring<Excluded> {
  timezone: string
  /** The first instant that may no longer fire. */
  endAt?: Instant
  exclude?: readonly Excluded[]
  /** A time on an excluded day moves to the next day that is not, at the same time of day; without it, it does not fire. */
  onExcluded?: 'next_business_day'
  catchUp?: CatchUp
}

export interface CronSpec<Excluded = Exclusion> extends Recurring<Excluded> {
  /** Canonical; several fire whenever one of them does. */
  cron: string | readonly string[]
  /** The first instant that may fire. */
  startAt?: Instant
  dst?: DstPolicy
}

export interface IntervalSpec<Excluded = Exclusion> extends Recurring<Excluded> {
  /** ISO 8601, canonical. */
  every: string
  /** The first fire time; all others are counted from it. */
  anchor: Instant
  /** How many fire times there are in all. */
  count?: number
}

/** What happens to local times that a change of the clocks leaves out, or repeats. The hour field decides what is usual. */
export interface DstPolicy {
  gap?: 'after' | 'skip'
  overlap?: 'first' | 'last' | 'both'
}

/** Dates are `2026-12-25`, whole days in the schedule's zone; `to` is the last of them. Instants are half-open. */
type FixedExclusion =
  | { date: string }
  | { from: string; to: string }
  | { fromAt: Instant; toAt: Instant }
  | { cron: string }

export type Exclusion = FixedExclusion | { calendar: string }
export type ResolvedExclusion = FixedExclusion | Calendar

/** The days on which a tenant does not work: dates, and the weekdays (0 is Sunday) that never are business days. */
export interface Calendar {
  days: readonly string[]
  weekend: readonly number[]
}

export interface CatchUp {
  policy: CatchUpPolicy
  windowMs: number
  max: number
}

export const DEFAULT_CATCH_UP: CatchUp = { policy: 'latest', windowMs: 3_600_000, max: 1_000 }
