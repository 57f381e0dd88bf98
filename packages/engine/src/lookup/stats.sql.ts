import { DEFAULT_TENANT } from '../job/definition.ts'
import { nameOf, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { DAY_MS, HOUR_MS } from '../schedule/duration.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** No count looks at more rows than this; whoever has more is told that there are more. */
const MAX_RUNS = 100_000
const MAX_ATTEMPTS = 100_000
const MAX_DEAD_LETTERS = 10_000
const MAX_TIMERS = 20_000
const MAX_QUEUES = 100

/** By `runs_by_tenant`, which the planner takes only for a literal; `default` is not in it. */
const runsText = (ofRuns: string): string =>
  `with scanned as materialized (
     select r.queue_id, r.state, r.due_at from belfry.runs r ${ofRuns} limit $1
   )
   select (select q.name from belfry.queues q where q.id = s.queue_id), s.state, count(*)::int, min(s.due_at), (select count(*)::int from scanned)
   from scanned s group by s.queue_id, s.state`
const RUNS = statement(
  'stats_of_runs',
  runsText(`where r.tenant_id = $2 and r.tenant_id <> ${DEFAULT_TENANT} order by r.tenant_id, r.job_id, r.nominal_at`),
)
const RUNS_OF_DEFAULT = statement(
  'stats_of_runs_of_default',
  runsText('where r.tenant_id = $2 order by r.shard, r.job_id, r.nominal_at'),
)
const RUNS_OF_ALL = statement('stats_of_all_runs', runsText('order by r.shard, r.job_id, r.nominal_at'))

/** The latest first, so that the hour is counted before the rest of the day. */
const LATEST = `select a.finished_at, a.outcome, a.final, a.counted from belfry.attempts a
     where a.tenant_id = TENANT and a.tenant_id > 0 and a.finished_at >= to_timestamp($2::float8 / 1000) order by a.finished_at desc limit $1`
const attemptsText = (scanned: string): string =>
  `with scanned as materialized (${scanned})
   select s.outcome, s.final, s.counted, count(*) filter (where s.finished_at >= to_timestamp($3::float8 / 1000))::int, count(*)::int,
     (select min(s.finished_at) from scanned s), (select count(*)::int from scanned)
   from scanned s group by s.outcome, s.final, s.counted`
const ATTEMPTS = statement('stats_of_attempts', attemptsText(LATEST.replace('TENANT', '$4')))
const ATTEMPTS_OF_ALL = statement(
  'stats_of_all_attempts',
  attemptsText(`select a.* from belfry.tenants n cross join lateral (${LATEST.replace('TENANT', 'n.id')}) a limit $1`),
)

const DEAD = statement(
  'stats_of_dead_letters',
  `select count(*)::int from (select from belfry.dead_letters d where d.tenant_id = $2 order by d.tenant_id, d.died_at limit $1) d`,
)
const DEAD_OF_ALL = statement(
  'stats_of_all_dead_letters',
  `select count(*)::int from (select from belfry.dead_letters d order by d.shard, d.job_id, d.nominal_at limit $1) d`,
)

/** Timers of a tenant stand in no order of time, so all of them are looked at, up to a bound. */
const NEXT = statement(
  'stats_of_next_due',
  `select min(t.due_at) filter (where t.due_at < 'infinity'), count(*)::int
   from (select t.due_at from belfry.timers t where t.tenant_id = $2 and t.tenant_id <> ${DEFAULT_TENANT} limit $1) t`,
)
/** The first of each shard: exact. It passes by what others have that is due sooner. */
const firstOf = (shards: string, condition: string): string =>
  `select min(t.due_at), 0 from ${shards} as s (shard) cross join lateral (
     select t.due_at from belfry.timers t where t.shard = s.shard and t.due_at < 'infinity' ${condition} order by t.due_at, t.job_id limit 1) t`
const NEXT_OF_DEFAULT = statement(
  'stats_of_next_due_of_default',
  firstOf('generate_series(0, $1::int - 1)', `and t.tenant_id = ${DEFAULT_TENANT}`),
)
const NEXT_OF_ALL = statement(
  'stats_of_next_due_of_all',
  firstOf(`generate_series(0, (select (m.value #>> '{}')::int from belfry.meta m where m.key = 'shards') - 1)`, ''),
)

export interface RunCounts {
  /** May run now. */
  ready: number
  /** Being performed. */
  running: number
  /** Between two attempts, or for another reason not yet ready. */
  waiting: number
}

export interface OutcomeCounts {
  succeeded: number
  failed: number
  canceled: number
  lost: number
  skipped: number
  /** Attempts that failed and are followed by another. */
  retried: number
  /** False: there are more than were counted. */
  isComplete: boolean
}

export interface StatsView {
  runs: RunCounts & {
    /** How long the oldest ready run has been due. */
    oldestReadyMs: number | null
    isComplete: boolean
    /** Those with the most runs first, a hundred at most. */
    queues: (RunCounts & { name: string })[]
  }
  /** Runs that have ended, by the attempts that ended them. */
  lastHour: OutcomeCounts
  lastDay: OutcomeCounts
  deadLetters: { count: number; isComplete: boolean }
  /** When a job is due next. Not complete: perhaps sooner. */
  nextDue: { at: Date | null; isComplete: boolean }
}

interface StatsRequest {
  /** Null: of the whole installation. */
  tenant: { id: number; shards: number } | null
  now: Instant
}

/** A few counts, each over a bounded number of rows that an index gives. */
export async function readStats(db: Queryable, { tenant, now }: StatsRequest): Promise<StatsView> {
  const [runs, outcomes, deadLetters, nextDue] = await Promise.all([
    countRuns(db, tenant, now),
    countOutcomes(db, tenant, now),
    countDeadLetters(db, tenant),
    findNextDue(db, tenant),
  ])
  return { runs, ...outcomes, deadLetters, nextDue }
}

async function countRuns(db: Queryable, tenant: StatsRequest['tenant'], now: Instant): Promise<StatsView['runs']> {
  type Row = [queue: string | null, state: number, count: number, oldestDue: Instant, looked: number]
  const rows =
    tenant === null
      ? await db.query<Row>(RUNS_OF_ALL, [MAX_RUNS])
      : await db.query<Row>(tenant.id === DEFAULT_TENANT ? RUNS_OF_DEFAULT : RUNS, [MAX_RUNS, tenant.id])
  const all: RunCounts = { ready: 0, running: 0, waiting: 0 }
  const queues = new Map<string, RunCounts & { name: string }>()
  let oldest = Number.POSITIVE_INFINITY
  for (const [queue, state, count, due] of rows) {
    const name = queue ?? ''
    const own = queues.get(name) ?? { name, ready: 0, running: 0, waiting: 0 }
    const kind = state === RUN_STATE.ready ? 'ready' : state === RUN_STATE.leased ? 'running' : 'waiting'
    own[kind] += count
    all[kind] += count
    queues.set(name, own)
    if (kind === 'ready') oldest = Math.min(oldest, due)
  }
  const sum = (counts: RunCounts): number => counts.ready + counts.running + counts.waiting
  return {
    ...all,
    oldestReadyMs: Number.isFinite(oldest) ? Math.max(0, now - oldest) : null,
    isComplete: (rows[0]?.[4] ?? 0) < MAX_RUNS,
    queues: [...queues.values()].sort((a, b) => sum(b) - sum(a) || (a.name < b.name ? -1 : 1)).slice(0, MAX_QUEUES),
  }
}

async function countOutcomes(
  db: Queryable,
  tenant: StatsRequest['tenant'],
  now: Instant,
): Promise<Pick<StatsView, 'lastHour' | 'lastDay'>> {
  const since = [MAX_ATTEMPTS, now - DAY_MS, now - HOUR_MS]
  type Row = [
    ...[outcome: number, final: boolean, counted: boolean, inHour: number, inDay: number],
    ...[earliest: Instant, looked: number],
  ]
  const rows =
    tenant === null ? await db.query<Row>(ATTEMPTS_OF_ALL, since) : await db.query<Row>(ATTEMPTS, [...since, tenant.id])
  const isFull = (rows[0]?.[6] ?? 0) >= MAX_ATTEMPTS
  // Of one tenant the latest were counted, so the hour is whole if anything older was.
  const hasHour = tenant !== null && (rows[0]?.[5] ?? now) < now - HOUR_MS
  const lastHour = { ...NOTHING, isComplete: !isFull || hasHour }
  const lastDay = { ...NOTHING, isComplete: !isFull }
  for (const [outcome, final, counted, inHour, inDay] of rows) {
    const name = nameOf(OUTCOME, outcome)
    const kind = final ? name : counted && name === 'failed' ? 'retried' : undefined
    if (kind === undefined || !(kind in NOTHING)) continue
    lastHour[kind as keyof typeof NOTHING] += inHour
    lastDay[kind as keyof typeof NOTHING] += inDay
  }
  return { lastHour, lastDay }
}

const NOTHING = { succeeded: 0, failed: 0, canceled: 0, lost: 0, skipped: 0, retried: 0 }

async function countDeadLetters(db: Queryable, tenant: StatsRequest['tenant']): Promise<StatsView['deadLetters']> {
  const [row] =
    tenant === null
      ? await db.query<[number]>(DEAD_OF_ALL, [MAX_DEAD_LETTERS])
      : await db.query<[number]>(DEAD, [MAX_DEAD_LETTERS, tenant.id])
  const count = row?.[0] ?? 0
  return { count, isComplete: count < MAX_DEAD_LETTERS }
}

async function findNextDue(db: Queryable, tenant: StatsRequest['tenant']): Promise<StatsView['nextDue']> {
  type Row = [at: Instant | null, looked: number]
  const [row] =
    tenant === null
      ? await db.query<Row>(NEXT_OF_ALL, [])
      : tenant.id === DEFAULT_TENANT
        ? await db.query<Row>(NEXT_OF_DEFAULT, [tenant.shards])
        : await db.query<Row>(NEXT, [MAX_TIMERS, tenant.id])
  const [at, looked] = row ?? [null, 0]
  return { at: at === null ? null : new Date(at), isComplete: looked < MAX_TIMERS }
}
