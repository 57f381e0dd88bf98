/**
 * The client of Belfry's HTTP API. It has no dependencies and needs only `fetch`, so that it runs in Node.js, Bun, Deno and
 * browsers.
 *
 * ```ts
 * const belfry = new BelfryClient({ url: 'http://localhost:8080', key })
 * const { jobId } = await belfry.jobs.create({ queue: 'emails', delay: '10m', payload: { to: 'ada@example.com' } })
 * for await (const run of belfry.jobs.runs(jobId)) console.log(run.status)
 * ```
 *
 * `@belfry/client/worker` performs runs of queues, `@belfry/client/receiver` checks calls that Belfry makes to you.
 */
export { base64Body } from './base64.ts'
export { BelfryClient } from './client.ts'
export { type ApiErrorCode, BelfryApiError, BelfryConnectionError } from './errors.ts'
export type { Fetch, HttpAnswer, HttpRequest } from './http.ts'
export type { Pages } from './pages.ts'
export type { BackfillInput } from './resources/backfills.ts'
export type { JobPatch, UpdateOptions } from './resources/jobs.ts'
export type { CompleteAnswer, HeartbeatAnswer, LeaseOutcome, ReleaseAnswer } from './resources/leases.ts'
export type { PutPayloadOptions } from './resources/payloads.ts'
export type { GetRunOptions } from './resources/runs.ts'
export type { CallOptions, ConnectionOptions } from './transport.ts'
export type {
  ApiKey,
  Attempt,
  Backfill,
  BackfillPreview,
  BatchJob,
  Calendar,
  CalendarInput,
  CalendarItem,
  Circuit,
  Completion,
  CreatedBackfill,
  CreatedJob,
  DeadLetter,
  ErrorCode,
  Explanation,
  Forecast,
  Heartbeat,
  HttpTarget,
  InstantInput,
  Job,
  JobChange,
  JobInput,
  Leased,
  LeasedRun,
  LogLine,
  MadeApiKey,
  NamedJobInput,
  Node,
  Operations,
  Page,
  Problem,
  Queue,
  Run,
  RunSummary,
  Scale,
  Secret,
  SigningKey,
  Stats,
  Tenant,
  WhoAmI,
  Worker as RegisteredWorker,
  WorkerInput,
} from './wire.ts'
