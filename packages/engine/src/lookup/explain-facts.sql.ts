import { SUBJECT } from '../audit/record-change.sql.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS } from '../schedule/duration.ts'
import { type Columns, column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { PastAttempt } from './run-view.ts'

/** Rows of each kind that one question may look at; a list that is full is known up to its last row, and no further. */
const MAX_ATTEMPTS = 5_000
const MAX_ROWS = 1_000
const MAX_ALIVE = 20
const MAX_UPDATES = 100_000

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::bigint`
const list = ({ text }: { text: string }, from: string): string =>
  `(select coalesce(json_agg(x.found), '[]') from (select json_build_array(${text}) as found ${from}) x)`
const INSIDE = '>= to_timestamp($4::float8 / 1000)'
const OUTSIDE = '< to_timestamp($5::float8 / 1000)'
const OF_JOB = `c.tenant_id = $3 and c.subject = ${SUBJECT.job} and c.subject_id = $2::uuid::text`

const queueOf = (row: string): string => `(select q.name from belfry.queues q where q.id = ${row}.queue_id)`
const CHANGE = columns({
  at: column<Instant>(ms('c.changed_at')),
  action: column<string>('c.action'),
  actor: column<string>('c.actor'),
  /** Of an update: what it replaced. */
  before:
    column<TimeDefinition | null>(`case when c.action = 'update' then json_build_object('schedule', c.before -> 'schedule', 'jitterMs', c.before -> 'jitterMs',
       'maxRuns', c.before -> 'maxRuns') end`),
  after: column<{ status?: string; reason?: string | null } | null>("case when c.action <> 'update' then c.after end"),
  /** The job's status before it, unless it was an update. */
  was: column<string | null>("case when c.action <> 'update' then c.before ->> 'status' end"),
})
export type JobChange = Read<typeof CHANGE>

const LIVE = columns({
  nominalAt: column<Instant>(ms('r.nominal_at')),
  dueAt: column<Instant>(ms('r.due_at')),
  state: column<number>('r.state'),
  attempt: column<number>('r.attempt'),
  failures: column<number>('r.failures'),
  cause: column<number>('r.cause'),
  cancelRequested: column<boolean>('r.cancel_requested'),
  leasedAt: column<Instant | null>(ms('r.leased_at')),
  queueId: column<number>('r.queue_id'),
  turn: column<number>('r.turn'),
  queue: column<string | null>(queueOf('r')),
  gateKey: column<string | null>('r.gate_key::text'),
})
export type LiveRun = Read<typeof LIVE>

const ALIVE = columns<Facts['alive'][number]>({ nominalAt: ms('r.nominal_at'), state: 'r.state' })
const ATTEMPT = columns<EndedAttempt>({
  ...{
    nominalAt: ms('a.nominal_at'),
    number: 'a.number',
    counted: 'a.counted',
    final: 'a.final',
    outcome: 'a.outcome',
  },
  ...{ failureClass: 'a.failure_class', error: 'a.error', reason: 'a.reason', reasonAt: ms('a.reason_at') },
  ...{ statusCode: 'a.status_code', holder: 'a.holder::text', dueAt: ms('a.due_at'), leasedAt: ms('a.leased_at') },
  ...{ startedAt: ms('a.started_at'), finishedAt: ms('a.finished_at'), cause: 'a.cause', jobVersion: 'a.job_version' },
  queue: `case when a.leased_at is null then ${queueOf('a')} end`,
})
const SKIP = columns({
  from: column<Instant>(ms('s.from_nominal')),
  to: column<Instant>(ms('s.to_nominal')),
  decidedAt: column<Instant>(ms('s.decided_at')),
  reason: column<number>('s.reason'),
  count: column<number | null>('s.count'),
  jobVersion: column<number>('s.job_version'),
})
export type SkipFact = Read<typeof SKIP>

type Found = Pick<Facts, 'version' | 'status' | 'isOneOff' | 'updatedAt' | 'pausedAt' | 'pauseReason' | 'updates'> &
  Record<'definition' | 'changes' | 'before' | 'live' | 'alive' | 'attempts' | 'skips', string> &
  Pick<NonNullable<Facts['timer']>, 'jitterMs' | 'remainingRuns' | 'queue'> & {
    hasTimer: boolean
    timerNominalAt: Instant | null
    timerDueAt: Instant
  }

/** What is looked at of the job, its timer `t`, and the rows of each other place as a list. */
const FOUND = columns<Found>({
  ...{ version: 'job.version', status: 'job.status', isOneOff: 'job.one_off', updatedAt: 'job.updated_at' },
  ...{ pausedAt: 'job.paused_at', pauseReason: 'job.pause_reason' },
  definition: `json_build_object('schedule', job.definition -> 'schedule', 'jitterMs', job.definition -> 'jitterMs', 'maxRuns', job.definition -> 'maxRuns',
       'follows', job.definition -> 'after' is not null, 'url', job.definition #> '{http,url}', 'overlap', job.definition -> 'overlap')`,
  ...{
    hasTimer: 't.job_id is not null',
    timerNominalAt: 't.nominal_at',
    timerDueAt: 't.due_at',
    jitterMs: 't.jitter_ms',
  },
  remainingRuns: 't.remaining_runs',
  queue: queueOf('t'),
  changes: list(
    CHANGE,
    `from belfry.job_changes c where ${OF_JOB} and c.changed_at ${INSIDE} and c.action <> 'trigger'
     order by c.changed_at, c.written_at limit ${MAX_ROWS}`,
  ),
  before: list(
    CHANGE,
    `from belfry.job_changes c where ${OF_JOB} and c.changed_at < to_timestamp($4::float8 / 1000) and c.changed_at >= to_timestamp($7::float8 / 1000)
       and c.action in ('pause', 'resume', 'cancel')
     order by c.changed_at desc, c.written_at desc limit 1`,
  ),
  updates: `(select count(*)::int from (select from belfry.job_changes c where ${OF_JOB} and c.changed_at ${INSIDE} and c.action = 'update' limit ${MAX_UPDATES}) u)`,
  live: list(
    LIVE,
    `from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.nominal_at ${INSIDE} and r.nominal_at ${OUTSIDE}
     order by r.nominal_at limit ${MAX_ROWS}`,
  ),
  alive: list(
    ALIVE,
    `from belfry.runs r where r.shard = $1 and r.job_id = $2 and r.state <> ${RUN_STATE.blocked} order by r.nominal_at limit ${MAX_ALIVE}`,
  ),
  attempts: list(
    ATTEMPT,
    `from belfry.attempts a where a.shard = $1 and a.job_id = $2 and a.nominal_at ${INSIDE} and a.nominal_at ${OUTSIDE}
       and a.finished_at >= to_timestamp(case when (select job.one_off from job) then $7::float8 else $6::float8 end / 1000)
     order by a.nominal_at, a.finished_at, a.number limit ${MAX_ATTEMPTS}`,
  ),
  skips: list(
    SKIP,
    `from belfry.skips s where s.shard = $1 and s.job_id = $2 and s.from_nominal ${OUTSIDE} and s.to_nominal > to_timestamp($4::float8 / 1000)
       and s.decided_at >= to_timestamp($8::float8 / 1000)
     order by s.from_nominal, s.decided_at limit ${MAX_ROWS}`,
  ),
})

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
   select ${FOUND.text}
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

export interface EndedAttempt extends PastAttempt {
  nominalAt: Instant
  /** By `ATTEMPT_REASON`. */
  reason: number | null
  /** The nominal time that came meanwhile. */
  reasonAt: Instant | null
  dueAt: Instant
  cause: number
  jobVersion: number
  /** Of an end without a lease. */
  queue: string | null
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

/** Whoever decides a nominal time does so after it, by its own clock. */
const SLACK_MS = 1_000

/** Null: there is no such job, or it is another tenant's. */
export async function readFacts(db: Queryable, request: FactsRequest): Promise<Facts | null> {
  const { shard, jobId, tenantId, from, to, created } = request
  const ended = Math.max(created, from - DAY_MS)
  const values = [shard, jobId, tenantId, from, to, ended, created, from - SLACK_MS]
  const [row] = await db.query<RowOf<Found>>(FACTS, values)
  if (row === undefined) return null
  const found = FOUND.read(row)
  const { version, status, isOneOff, updatedAt, pausedAt, pauseReason, jitterMs, remainingRuns, queue, updates } = found
  const changes = rowsOf(found.changes, CHANGE)
  const attempts = rowsOf(found.attempts, ATTEMPT)
  const skips = rowsOf(found.skips, SKIP)
  const live = rowsOf(found.live, LIVE)
  const timer = { nominalAt: found.timerNominalAt, dueAt: found.timerDueAt, jitterMs, remainingRuns, queue }
  return {
    ...{ version, status, isOneOff, updatedAt, pausedAt, pauseReason, updates, changes, live, attempts, skips },
    definition: JSON.parse(found.definition) as Facts['definition'],
    timer: found.hasTimer ? timer : null,
    before: rowsOf(found.before, CHANGE)[0] ?? null,
    alive: rowsOf(found.alive, ALIVE),
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

const rowsOf = <Named extends object>(json: string, of: Columns<Named>): Named[] =>
  (JSON.parse(json) as RowOf<Named>[]).map((row) => of.read(row))
