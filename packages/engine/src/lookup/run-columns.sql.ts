import { runIdOf } from '../job/ids.ts'
import { OUTCOME } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import { causeOf, failureClassOf, finalStatusOf, liveStatusOf, type RunSummary } from './run-view.ts'

const queueOf = (row: string): string => `(select q.name from belfry.queues q where q.id = ${row}.queue_id) as queue`
const tenantOf = (row: string): string =>
  `(select n.name from belfry.tenants n where n.id = ${row}.tenant_id) as tenant`

/** `attemptOf` of a row `a` of history. */
export const ATTEMPT_OF_END = 'case when a.leased_at is null then greatest(a.number - 1, 0) else a.number end'

/** Of a live run `r`, whose attempt that ended last is `last`, or nothing. A run that is over has an outcome in place of a state. */
export const LIVE_RUN = columns({
  jobId: column<string>('r.job_id'),
  nominalAt: column<Instant>('r.nominal_at'),
  dueAt: column<Instant>('r.due_at'),
  state: column<number | null>('r.state'),
  outcome: column<number | null>('null::smallint as outcome'),
  attempt: column<number>('r.attempt'),
  failures: column<number>('r.failures'),
  cause: column<number>('r.cause'),
  jobVersion: column<number>('r.job_version'),
  queue: column<string | null>(queueOf('r')),
  tenant: column<string | null>(tenantOf('r')),
  failureClass: column<number | null>('last.failure_class'),
  error: column<string | null>('last.error'),
  result: column<string | null>('null::json as result'),
  finishedAt: column<Instant | null>('null::timestamptz as finished_at'),
})
export type SummaryRow = RowOf<Read<typeof LIVE_RUN>>

export const lastAttemptOf = `left join lateral (
       select a.failure_class, a.error from belfry.attempts a
       where r.attempt > 0 and a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at
         and a.finished_at >= r.nominal_at - interval '1 day'
       order by a.finished_at desc limit 1) last on true`

/** Of the end `a` of a run. Failures are counted from its own attempts, of which a first one that ended it is all there is. */
export const pastColumns = LIVE_RUN.textOf({
  jobId: 'a.job_id',
  nominalAt: 'a.nominal_at',
  dueAt: 'a.due_at',
  outcome: 'a.outcome',
  attempt: ATTEMPT_OF_END,
  failures: `case when a.number = 1 then case when a.outcome in (${OUTCOME.failed}, ${OUTCOME.lost}) then 1 else 0 end
         else (select count(*)::int from belfry.attempts f where f.shard = a.shard and f.job_id = a.job_id and f.nominal_at = a.nominal_at
           and f.finished_at >= a.nominal_at - interval '1 day' and f.counted and f.outcome in (${OUTCOME.failed}, ${OUTCOME.lost})) end`,
  cause: 'a.cause',
  jobVersion: 'a.job_version',
  queue: queueOf('a'),
  tenant: tenantOf('a'),
  failureClass: 'a.failure_class',
  error: 'a.error',
  result: 'a.result',
  finishedAt: 'a.finished_at',
})

/** The runs of a page. A row without one says only where the scan stopped. */
export const runsOfPage = (rows: readonly SummaryRow[]): RunSummary[] =>
  rows.filter((row) => LIVE_RUN.get(row, 'jobId') !== null).map(runSummaryOf)

function runSummaryOf(row: SummaryRow): RunSummary {
  const { jobId, nominalAt, dueAt, state, outcome, queue, tenant, finishedAt, ...run } = LIVE_RUN.read(row)
  return {
    id: runIdOf(jobId, nominalAt),
    jobId,
    tenant: tenant ?? '',
    nominalAt: new Date(nominalAt),
    dueAt: new Date(dueAt),
    status: state === null ? finalStatusOf(outcome ?? 0) : liveStatusOf(state),
    attempt: run.attempt,
    failures: run.failures,
    queue: queue ?? '',
    cause: causeOf(run.cause),
    jobVersion: run.jobVersion,
    result: run.result === null ? null : JSON.parse(run.result),
    progress: null,
    failureClass: failureClassOf(run.failureClass),
    error: run.error,
    finishedAt: finishedAt === null ? null : new Date(finishedAt),
  }
}
