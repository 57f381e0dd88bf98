import type { ResponseRecord } from '../executors/http/response-record.ts'
import { createdAtOf, parseRunId, runIdOf, shardOfJob } from '../job/ids.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { column, columns, type Read } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import {
  attemptOf,
  attemptViewOf,
  causeOf,
  dateOf,
  failureClassOf,
  finalStatusOf,
  isFailure,
  liveStatusOf,
  type RunStatus,
  type RunView,
} from './run-view.ts'

const MAX_ATTEMPTS = 1_000

/** Where the run is; nothing but nulls if it is over. */
const PLACE = columns({
  tenantId: column<number | null>('p.tenant_id'),
  tenant: column<string | null>('(select n.name from belfry.tenants n where n.id = p.tenant_id)'),
  queue: column<string | null>('(select q.name from belfry.queues q where q.id = p.queue_id)'),
  state: column<number | null>('p.state'),
  isDead: column<boolean | null>('p.is_dead'),
  dueAt: column<Instant | null>('p.due_at'),
  attempt: column<number | null>('p.attempt'),
  failures: column<number | null>('p.failures'),
  cause: column<number | null>('p.cause'),
  jobVersion: column<number | null>('p.job_version'),
  cancelRequested: column<boolean | null>('p.cancel_requested'),
  leaseUntil: column<Instant | null>('p.lease_until'),
  failureClass: column<number | null>('p.failure_class'),
  error: column<string | null>('p.error'),
  progress: column<string | null>(`case when p.state is not null then (
       select c.progress from belfry.checkpoints c where c.shard = $1 and c.job_id = $2 and c.nominal_at = to_timestamp($3::float8 / 1000)) end`),
  blockedBy: column<Instant | null>(`case when p.state = ${RUN_STATE.blocked} then (
       select r.nominal_at from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.state <> ${RUN_STATE.blocked} order by r.nominal_at limit 1) end`),
})
type Place = Read<typeof PLACE>

/** An attempt that has ended. */
const ENDED = columns({
  number: column<number>('a.number'),
  counted: column<boolean>('a.counted'),
  final: column<boolean>('a.final'),
  outcome: column<number>('a.outcome'),
  failureClass: column<number | null>('a.failure_class'),
  error: column<string | null>('a.error'),
  statusCode: column<number | null>('a.status_code'),
  holder: column<string | null>('a.holder'),
  leasedAt: column<Instant | null>('a.leased_at'),
  startedAt: column<Instant | null>('a.started_at'),
  finishedAt: column<Instant>('a.finished_at'),
  result: column<string | null>('a.result'),
  tenantId: column<number>('a.tenant_id'),
  tenant: column<string | null>('(select n.name from belfry.tenants n where n.id = a.tenant_id)'),
  queue: column<string | null>('(select q.name from belfry.queues q where q.id = a.queue_id)'),
  dueAt: column<Instant>('a.due_at'),
  cause: column<number>('a.cause'),
  jobVersion: column<number>('a.job_version'),
  response: column<string | null>('a.response'),
})
type Ended = Read<typeof ENDED>

/**
 * One statement over all places of a run, so one snapshot: the timer that it will come from, `runs`, `dead_letters`, each
 * by primary key, and `attempts` by `attempts_by_run`, one row of the answer for each. A run cannot end before its nominal
 * time, so older days are left out; only a one-off can, when it is canceled while it waits, so for those the days since
 * its creation are read.
 */
const GET = statement(
  'get_run',
  `select ${PLACE.text}, ${ENDED.text}
   from (select) one
   left join lateral (
     select places.* from (
       select 0 as rank, r.tenant_id, r.queue_id, r.state, false as is_dead, r.due_at, r.attempt, r.failures, r.cause, r.job_version, r.cancel_requested,
         r.lease_until, null::smallint as failure_class, null::text as error
       from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp($3::float8 / 1000)
       union all
       select 1, d.tenant_id, d.queue_id, null, true, d.due_at, d.attempt, d.failures, d.cause, d.job_version, false, null, d.failure_class, d.error
       from belfry.dead_letters d where d.shard = $1 and d.job_id = $2 and d.nominal_at = to_timestamp($3::float8 / 1000)
       union all
       select 2, t.tenant_id, t.queue_id, null, false, t.due_at, 0, 0, case when t.schedule_id is null then 1 else 0 end, t.job_version, false, null, null, null
       from belfry.timers t where t.shard = $1 and t.job_id = $2 and t.nominal_at = to_timestamp($3::float8 / 1000)
     ) places order by places.rank limit 1) p on true
   left join lateral (
     select a.number, a.counted, a.final, a.outcome, a.failure_class, a.error, a.status_code, a.holder, a.leased_at, a.started_at, a.finished_at, a.result,
       a.tenant_id, a.queue_id, a.due_at, a.cause, a.job_version, a.response
     from belfry.attempts a
     where a.shard = $1 and a.job_id = $2 and a.nominal_at = to_timestamp($3::float8 / 1000) and a.finished_at >= to_timestamp(
       case when exists (select from belfry.specs s where s.shard = $1 and s.job_id = $2) then $4::float8 else $5::float8 end / 1000)
     order by a.finished_at desc, a.number desc limit ${MAX_ATTEMPTS}) a on true
   where p.tenant_id is not null or a.tenant_id is not null
   order by a.finished_at, a.number`,
)

/** Null: there is no such run, or it is another tenant's. A run that is to come from a timer is waiting. */
export async function getRun(db: Queryable, tenantId: number | null, runId: string): Promise<RunView | null> {
  const run = parseRunId(runId)
  if (run === null) return null
  const { jobId, nominalAt } = run
  const sinceCreated = createdAtOf(jobId) - DAY_MS
  const rows = await db.query(GET, [
    shardOfJob(jobId),
    jobId,
    nominalAt,
    sinceCreated,
    Math.max(sinceCreated, nominalAt - DAY_MS),
  ])
  const [first] = rows
  if (first === undefined) return null
  const place = PLACE.read(first)
  const ended = rows.map((row) => ENDED.read(PLACE.behind(row))).filter(({ number }) => number !== null)
  if (tenantId !== null && (place.tenantId ?? ended[0]?.tenantId) !== tenantId) return null
  return runViewOf(jobId, nominalAt, place, ended)
}

function runViewOf(jobId: string, nominalAt: Instant, place: Place, ended: readonly Ended[]): RunView {
  const { state, failures } = place
  const last = ended.at(-1)
  const final = state === null ? ended.findLast((attempt) => attempt.final) : undefined
  return {
    id: runIdOf(jobId, nominalAt),
    jobId,
    tenant: place.tenant ?? last?.tenant ?? '',
    nominalAt: new Date(nominalAt),
    // Infinite while its job is paused.
    dueAt: dateOf(place.dueAt ?? last?.dueAt ?? null) ?? new Date(nominalAt),
    status: statusOf(place, final),
    attempt: Math.max(place.attempt ?? 0, ...ended.map(attemptOf)),
    failures: failures !== null && (state !== null || place.isDead) ? failures : ended.filter(isFailure).length,
    queue: place.queue ?? last?.queue ?? '',
    cause: causeOf(place.cause ?? last?.cause ?? -1),
    jobVersion: place.jobVersion ?? last?.jobVersion ?? 1,
    result: final?.result ? JSON.parse(final.result) : null,
    progress: place.progress === null ? null : JSON.parse(place.progress),
    failureClass: failureClassOf((last ?? place).failureClass),
    error: (last ?? place).error,
    finishedAt: final ? new Date(final.finishedAt) : null,
    cancelRequested: place.cancelRequested ?? false,
    leaseUntil: dateOf(place.leaseUntil),
    blockedBy: place.blockedBy === null ? null : runIdOf(jobId, place.blockedBy),
    attempts: ended.map((attempt) => ({ ...attemptViewOf(attempt), response: responseOf(attempt) })),
  }
}

function statusOf({ state, isDead, dueAt }: Place, final: Ended | undefined): RunStatus {
  if (state !== null) return liveStatusOf(state)
  if (final !== undefined) return finalStatusOf(final.outcome)
  return isDead || dueAt === null ? 'failed' : 'waiting'
}

const responseOf = ({ response }: Ended): ResponseRecord | null => (response === null ? null : JSON.parse(response))
