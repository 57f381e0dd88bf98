import { OUTCOME } from '../job/states.ts'

/** The columns of `SummaryRow`, for a live run and for the end of one; texts that the lists' statements share. */

const names = (row: string): string => `(select q.name from belfry.queues q where q.id = ${row}.queue_id) as queue,
       (select n.name from belfry.tenants n where n.id = ${row}.tenant_id) as tenant`

/** `last` is the attempt that ended last, or nothing. */
export const liveColumns = `r.job_id, r.nominal_at, r.due_at, r.state, null::smallint as outcome, r.attempt, r.failures, r.cause, r.job_version, ${names('r')},
       last.failure_class, last.error, null::json as result, null::timestamptz as finished_at`

export const lastAttemptOf = `left join lateral (
       select a.failure_class, a.error from belfry.attempts a
       where r.attempt > 0 and a.shard = r.shard and a.job_id = r.job_id and a.nominal_at = r.nominal_at
         and a.finished_at >= r.nominal_at - interval '1 day'
       order by a.finished_at desc limit 1) last on true`

/** Failures are counted from the run's own attempts, of which a first one that ended it is all there is. */
export const pastColumns = `a.job_id, a.nominal_at, a.due_at, null::smallint as state, a.outcome, a.number as attempt,
       case when a.number = 1 then case when a.outcome in (${OUTCOME.failed}, ${OUTCOME.lost}) then 1 else 0 end
         else (select count(*)::int from belfry.attempts f where f.shard = a.shard and f.job_id = a.job_id and f.nominal_at = a.nominal_at
           and f.finished_at >= a.nominal_at - interval '1 day' and f.counted and f.outcome in (${OUTCOME.failed}, ${OUTCOME.lost})) end as failures,
       a.cause, a.job_version, ${names('a')}, a.failure_class, a.error, a.result, a.finished_at`
