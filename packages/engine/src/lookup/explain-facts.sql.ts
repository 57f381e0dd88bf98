import { SUBJECT } from '../audit/record-change.sql.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Rows of each kind that one question may look at; a list that is full is known up to its last row, and no further. */
const MAX_ATTEMPTS = 5_000
const MAX_ROWS = 1_000
const MAX_ALIVE = 20
const MAX_UPDATES = 100_000

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`
const list = (columns: string, from: string): string =>
  `(select coalesce(json_agg(json_build_array(${columns})), '[]') from (${from}) x)`
const INSIDE = '>= to_timestamp($4::float8 / 1000)'
const OUTSIDE = '< to_timestamp($5::float8 / 1000)'
const OF_JOB = `c.tenant_id = $3 and c.subject = ${SUBJECT.job} and c.subject_id = $2::uuid::text`

/**
 * All that is known about the nominal times of a job in [$4, $5), in one snapshot. Each place by primary key or by its index
 * on the job; history by the days since `$6`, before which nothing of these nominal times has ended, save a one-off that was
 * canceled while it waited. Of changes, those since
 * the first of these times, without their payloads, and the one before that says whether the job was paused.
 */
const FACTS = statement(
  'explain_facts',
  `with job as materialized (
     select j.version, j.status, false as one_off, j.updated_at, j.paused_at, j.pause_reason, j.definition
     from belfry.jobs j where j.shard = $1 and j.id = $2 and j.tenant_id = $3
     union all
     select s.version, 0, true, s.updated_at, s.paused_at, s.pause_reason, s.definition
     from belfry.specs s where s.shard = $1 and s.job_id = $2 and s.tenant_id = $3
     limit 1
   )
   select job.version, job.status, job.one_off, job.updated_at, job.paused_at, job.pause_reason,
     json_build_object('schedule', job.definition -> 'schedule', 'jitterMs', job.definition -> 'jitterMs', 'maxRuns', job.definition -> 'maxRuns',
       'follows', job.definition -> 'after' is not null, 'url', job.definition #> '{http,url}', 'overlap', job.definition -> 'overlap'),
     t.job_id is not null, t.nominal_at, t.due_at, t.jitter_ms, t.remaining_runs,
     (select q.name from belfry.queues q where q.id = t.queue_id),
     ${list(
       `${ms('x.changed_at')}, x.action, x.actor, x.definition, x.after, x.was`,
       `select c.changed_at, c.action, c.actor, case when c.action = 'update' then json_build_object('schedule', c.before -> 'schedule',
          'jitterMs', c.before -> 'jitterMs', 'maxRuns', c.before -> 'maxRuns') end as definition, case when c.action <> 'update' then c.after end as after,
          case when c.action <> 'update' then c.before ->> 'status' end as was
        from belfry.job_changes c where ${OF_JOB} and c.changed_at ${INSIDE} and c.action <> 'trigger'
        order by c.changed_at, c.written_at limit ${MAX_ROWS}`,
     )},
     ${list(
       `${ms('x.changed_at')}, x.action, x.actor, null::json, x.after, x.was`,
       `select c.changed_at, c.action, c.actor, c.after, c.before ->> 'status' as was from belfry.job_changes c
        where ${OF_JOB} and c.changed_at < to_timestamp($4::float8 / 1000) and c.changed_at >= to_timestamp($7::float8 / 1000)
          and c.action in ('pause', 'resume', 'cancel')
        order by c.changed_at desc, c.written_at desc limit 1`,
     )},
     (select count(*)::int from (select from belfry.job_changes c where ${OF_JOB} and c.changed_at ${INSIDE} and c.action = 'update' limit ${MAX_UPDATES}) u),
     ${list(
       `${ms('x.nominal_at')}, ${ms('x.due_at')}, x.state, x.attempt, x.failures, x.cause, x.cancel_requested, ${ms('x.leased_at')}, x.queue_id, x.turn, x.queue`,
       `select r.nominal_at, r.due_at, r.state, r.attempt, r.failures, r.cause, r.cancel_requested, r.leased_at, r.queue_id, r.turn,
          (select q.name from belfry.queues q where q.id = r.queue_id) as queue
        from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at ${INSIDE} and r.nominal_at ${OUTSIDE}
        order by r.nominal_at limit ${MAX_ROWS}`,
     )},
     ${list(
       `${ms('x.nominal_at')}, x.state`,
       `select r.nominal_at, r.state from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.state <> ${RUN_STATE.blocked}
        order by r.nominal_at limit ${MAX_ALIVE}`,
     )},
     ${list(
       `${ms('x.nominal_at')}, x.number, x.counted, x.final, x.outcome, x.failure_class, x.error, x.status_code, x.holder::text, ${ms('x.due_at')},
        ${ms('x.leased_at')}, ${ms('x.started_at')}, ${ms('x.finished_at')}, x.cause, x.job_version, x.queue`,
       `select a.nominal_at, a.number, a.counted, a.final, a.outcome, a.failure_class, a.error, a.status_code, a.holder, a.due_at, a.leased_at,
          a.started_at, a.finished_at, a.cause, a.job_version,
          case when a.number = 0 then (select q.name from belfry.queues q where q.id = a.queue_id) end as queue
        from belfry.attempts a where a.shard = $1 and a.job_id = $2 and a.nominal_at ${INSIDE} and a.nominal_at ${OUTSIDE}
          and a.finished_at >= to_timestamp(case when (select job.one_off from job) then $7::float8 else $6::float8 end / 1000)
        order by a.nominal_at, a.finished_at, a.number limit ${MAX_ATTEMPTS}`,
     )},
     ${list(
       `${ms('x.from_nominal')}, ${ms('x.to_nominal')}, ${ms('x.decided_at')}, x.reason, x.count, x.job_version`,
       `select s.from_nominal, s.to_nominal, s.decided_at, s.reason, s.count, s.job_version from belfry.skips s
        where s.shard = $1 and s.job_id = $2 and s.from_nominal ${OUTSIDE} and s.to_nominal > to_timestamp($4::float8 / 1000)
          and s.decided_at >= to_timestamp($8::float8 / 1000)
        order by s.from_nominal, s.decided_at limit ${MAX_ROWS}`,
     )}
   from job left join lateral (
     select t.job_id, t.nominal_at, t.due_at, t.jitter_ms, t.remaining_runs, t.queue_id from belfry.timers t where t.shard = $1 and t.job_id = $2 limit 1
   ) t on true`,
)

/** What of a definition decides its nominal times. */
export interface TimeDefinition {
  schedule: unknown
  jitterMs: number | null
  maxRuns: number | null
}

export interface JobChange {
  at: Instant
  action: string
  actor: string
  /** Of an update: what it replaced. */
  before: TimeDefinition | null
  after: { status?: string; reason?: string | null } | null
  /** The job's status before it, unless it was an update. */
  was: string | null
}

export interface LiveRun {
  nominalAt: Instant
  dueAt: Instant
  state: number
  attempt: number
  failures: number
  cause: number
  cancelRequested: boolean
  leasedAt: Instant | null
  queueId: number
  turn: number
  queue: string | null
}

export interface EndedAttempt {
  nominalAt: Instant
  number: number
  counted: boolean
  final: boolean
  outcome: number
  failureClass: number | null
  error: string | null
  statusCode: number | null
  holder: string | null
  dueAt: Instant
  leasedAt: Instant | null
  startedAt: Instant | null
  finishedAt: Instant
  cause: number
  jobVersion: number
  /** Of a run that nobody ever performed. */
  queue: string | null
}

export interface SkipFact {
  from: Instant
  to: Instant
  decidedAt: Instant
  reason: number
  count: number | null
  jobVersion: number
}

export interface Facts {
  version: number
  status: number
  isOneOff: boolean
  updatedAt: Instant
  pausedAt: Instant | null
  pauseReason: string | null
  definition: TimeDefinition & { url: string | null; follows: boolean }
  /** Null: the job has no future. */
  timer: {
    /** Null: it has not been planned yet. */
    nominalAt: Instant | null
    dueAt: Instant
    jitterMs: number
    remainingRuns: number | null
    queue: string | null
  } | null
  /** Oldest first: those in and after the time that was asked about. */
  changes: JobChange[]
  /** The last pause, resume or cancel before. */
  before: JobChange | null
  /** How many updates there were since the first instant that was asked about. */
  updates: number
  live: LiveRun[]
  /** Live runs of the job that are not blocked, whenever they are for. */
  alive: { nominalAt: Instant; state: number }[]
  attempts: EndedAttempt[]
  skips: SkipFact[]
  /** Nothing is known of nominal times from here on: there was too much. */
  horizon: Instant
}

type Row = readonly [
  ...[version: number, status: number, isOneOff: boolean, updatedAt: Instant, pausedAt: Instant | null],
  ...[pauseReason: string | null, definition: string, hasTimer: boolean, nominalAt: Instant | null, dueAt: Instant],
  ...[jitterMs: number, remainingRuns: number | null, queue: string | null, changes: string, before: string],
  ...[updates: number, live: string, alive: string, attempts: string, skips: string],
]

export interface FactsRequest {
  shard: number
  jobId: string
  tenantId: number
  /** Half-open. */
  from: Instant
  to: Instant
  /** When the job was created, with some slack. */
  created: Instant
}

const DAY_MS = 86_400_000
/** Whoever decides a nominal time does so after it, by its own clock. */
const SLACK_MS = 1_000

/** Null: there is no such job, or it is another tenant's. */
export async function readFacts(db: Queryable, request: FactsRequest): Promise<Facts | null> {
  const { shard, jobId, tenantId, from, to, created } = request
  const ended = Math.max(created, from - DAY_MS)
  const values = [shard, jobId, tenantId, from, to, ended, created, from - SLACK_MS]
  const [row] = await db.query<Row>(FACTS, values)
  if (row === undefined) return null
  const [version, status, isOneOff, updatedAt, pausedAt, pauseReason, definition, hasTimer, nominalAt, dueAt] = row
  const changes = rowsOf(row[13]).map(changeOf)
  const attempts = rowsOf(row[18]).map(attemptOf)
  const skips = rowsOf(row[19]).map(skipOf)
  const live = rowsOf(row[16]).map(liveOf)
  return {
    version,
    status,
    isOneOff,
    updatedAt,
    pausedAt,
    pauseReason,
    definition: JSON.parse(definition) as Facts['definition'],
    timer: hasTimer ? { nominalAt, dueAt, jitterMs: row[10], remainingRuns: row[11], queue: row[12] } : null,
    changes,
    before: rowsOf(row[14]).map(changeOf)[0] ?? null,
    updates: row[15],
    live,
    alive: rowsOf(row[17]).map(([at, state]) => ({ nominalAt: at as Instant, state: state as number })),
    attempts,
    skips,
    horizon: Math.min(
      endOf(changes, MAX_ROWS, ({ at }) => at),
      endOf(attempts, MAX_ATTEMPTS, (attempt) => attempt.nominalAt),
      endOf(skips, MAX_ROWS, (skip) => skip.from),
      endOf(live, MAX_ROWS, (run) => run.nominalAt),
    ),
  }
}

function endOf<Item>(items: readonly Item[], limit: number, at: (item: Item) => Instant): Instant {
  return items.length < limit ? Number.POSITIVE_INFINITY : at(items[items.length - 1] as Item)
}

const rowsOf = (json: string): unknown[][] => JSON.parse(json) as unknown[][]

const changeOf = ([at, action, actor, before, after, was]: unknown[]): JobChange =>
  ({ at, action, actor, before, after, was }) as JobChange

const skipOf = ([from, to, decidedAt, reason, count, jobVersion]: unknown[]): SkipFact =>
  ({ from, to, decidedAt, reason, count, jobVersion }) as SkipFact

function liveOf(row: unknown[]): LiveRun {
  const [nominalAt, dueAt, state, attempt, failures, cause, cancelRequested, leasedAt, queueId, turn, queue] = row
  return {
    ...{ nominalAt, dueAt, state, attempt, failures, cause, cancelRequested, leasedAt, queueId, turn, queue },
  } as LiveRun
}

function attemptOf(row: unknown[]): EndedAttempt {
  const [nominalAt, number, counted, final, outcome, failureClass, error, statusCode, holder] = row
  const [dueAt, leasedAt, startedAt, finishedAt, cause, jobVersion, queue] = row.slice(9)
  return {
    ...{ nominalAt, number, counted, final, outcome, failureClass, error, statusCode, holder },
    ...{ dueAt, leasedAt, startedAt, finishedAt, cause, jobVersion, queue },
  } as EndedAttempt
}
