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
  overlap?: Overlap
  jitterMs?: number
  maxRuns?: number
  priority?: number
  /** Who created the job: an API key's prefix, or a program. */
  createdBy?: string
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

/** When a recurring job fires. Its canonical text is its identity, so millions of jobs share few schedules. */
export type ScheduleSpec = CronSpec | IntervalSpec

export interface CronSpec {
  cron: string
  timezone: string
  /** The first instant that may fire. */
  startAt?: Instant
  /** The first instant that may no longer fire. */
  endAt?: Instant
  catchUp?: CatchUp
}

export interface IntervalSpec {
  /** ISO 8601, canonical. */
  every: string
  timezone: string
  /** The first fire time; all others are counted from it. */
  anchor: Instant
  endAt?: Instant
  count?: number
  catchUp?: CatchUp
}

export interface CatchUp {
  policy: CatchUpPolicy
  windowMs: number
  max: number
}

export const DEFAULT_CATCH_UP: CatchUp = { policy: 'latest', windowMs: 3_600_000, max: 1_000 }
