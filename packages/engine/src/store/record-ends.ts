import { tellDependents } from './tell-dependents.ts'

type Text = string | number

/** How a statement writes what it says of an end; null is written for what it leaves out. */
type EndTexts = { outcome: Text } & Partial<Record<'counted' | 'final' | 'failureClass' | 'statusCode', Text>> &
  Partial<Record<'reason' | 'reasonAt' | 'error' | 'result' | 'response', Text>>

/** What an ending statement returns of the rows `r` of runs that have no lease. */
export const ENDED_RUN =
  'r.nominal_at, r.due_at, r.job_id, r.tenant_id, r.queue_id, r.job_version, r.shard, r.cause, r.one_off, r.has_dependents, r.attempt'
/** The same of leased runs; `started_at` and `finished_at`, in milliseconds, are added by the statement. */
export const ENDED_LEASE = `${ENDED_RUN}, r.leased_at, r.holder`

/** The parts of a statement that deleted the leased runs `gone`: `told` tells their dependents, `kept` is their last attempt. */
export const recordEnds = (end: EndTexts): string => `told as (
     ${tellDependents('gone', { number: 'e.attempt', outcome: end.outcome })} returning 1
   ), kept as (
     ${appendAttempts('gone', end)}
   )`

/**
 * The same of runs that end at `now` without a lease. Each leaves a row that does not count: nothing vanishes. Its number is 0 if the run
 * was never leased, else the one after its last attempt: so no two rows of a run have one number, and the end has the highest.
 */
export const recordUnrun = (now: string, end: EndTexts): string => `told as (
     ${tellDependents('gone', { number: NO_LEASE.number, outcome: end.outcome })} returning 1
   ), kept as (
     ${append('gone', { ...NO_LEASE, finishedAt: `to_timestamp(${now}::float8 / 1000)` }, { ...end, counted: 'false' })}
   )`

/** What becomes history of the attempts `ended`. */
export const appendAttempts = (ended: string, end: EndTexts): string => append(ended, LEASE, end)

const LEASE = {
  number: 'e.attempt',
  holder: 'e.holder',
  leasedAt: 'e.leased_at',
  startedAt: 'to_timestamp(e.started_at / 1000)',
  finishedAt: 'to_timestamp(e.finished_at / 1000)',
}
const NO_LEASE = {
  number: 'case when e.attempt = 0 then 0 else e.attempt + 1 end',
  holder: 'null',
  leasedAt: 'null',
  startedAt: 'null',
}

/** The only text that appends to history. */
const append = (ended: string, lease: typeof LEASE, end: EndTexts): string =>
  `insert into belfry.attempts (nominal_at, due_at, leased_at, started_at, finished_at, holder, job_id, tenant_id, queue_id, job_version, number,
       shard, outcome, failure_class, status_code, cause, counted, final, error, result, response, reason, reason_at)
     select e.nominal_at, e.due_at, ${lease.leasedAt}, ${lease.startedAt}, ${lease.finishedAt}, ${lease.holder}, e.job_id, e.tenant_id, e.queue_id,
       e.job_version, ${lease.number}, e.shard, ${end.outcome}, ${end.failureClass ?? null}, ${end.statusCode ?? null}, e.cause,
       ${end.counted ?? true}, ${end.final ?? true}, ${end.error ?? null}, ${end.result ?? null}, ${end.response ?? null},
       ${end.reason ?? null}, ${end.reasonAt ?? null}
     from ${ended} e`
