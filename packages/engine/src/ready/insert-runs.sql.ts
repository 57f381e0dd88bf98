import { OVERTIME_MS } from '../job/overtime.ts'
import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { NOW } from '../store/database-clock.ts'
import { type Statement, statement } from '../store/statement.ts'

type Text = string | number | boolean

/** How a statement writes what it says of the runs that it makes; what it leaves out stands in the column of that name. */
type RunTexts = { state: Text } & Partial<Record<'nominalAt' | 'dueAt' | 'jobVersion' | 'attempt', Text>> &
  Partial<Record<'cause' | 'oneOff' | 'hasDependents', Text>> & { lease?: LeaseTexts }
/** The terms of the lease of runs that are born `leased`. The statement begins with `CLOCK`. */
type LeaseTexts = Record<'holder' | 'leasedAt' | 'leaseMs', string>

/** Makes runs of the rows `born`, here called `b`: the only text that inserts into `runs`. */
export const insertRuns = (born: string, run: RunTexts): string =>
  `insert into belfry.runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version,
       attempt, failures, timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents, limit_key)
     select ${run.nominalAt ?? 'b.nominal_at'}, ${run.dueAt ?? 'b.due_at'}, b.turn, ${run.lease ? leasedColumns(run.lease) : 'null, null, null, null'},
       b.job_id, b.tenant_id, b.queue_id, ${run.jobVersion ?? 'b.job_version'}, ${run.attempt ?? 'b.attempt'}, 0, b.timeout_ms, b.shard, ${run.state},
       b.priority, ${run.cause ?? 'b.cause'}, b.delivery, ${run.oneOff ?? 'b.one_off'}, false, ${run.hasDependents ?? 'b.has_dependents'}, b.limit_key
     from ${born} b`

/** holder, leased_at, lease_until and deadline. */
const leasedColumns = ({ holder, leasedAt, leaseMs }: LeaseTexts): string =>
  `case when b.leased then ${holder}::bigint end, to_timestamp(case when b.leased then ${leasedAt}::float8 / 1000 end),
       to_timestamp(case when b.leased then (${NOW} + least(${leaseMs}::int, b.timeout_ms + ${OVERTIME_MS})) / 1000 end),
       to_timestamp(case when b.leased then (${NOW} + b.timeout_ms + ${OVERTIME_MS}) / 1000 end)`

const insertText = (run: RunTexts): string =>
  `with u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, to_timestamp(unnest($3::float8[]) / 1000) as nominal_at,
       to_timestamp(unnest($4::float8[]) / 1000) as due_at, unnest($5::bigint[]) as turn, unnest($6::int[]) as tenant_id,
       unnest($7::int[]) as queue_id, unnest($8::int[]) as job_version, unnest($9::int[]) as attempt, unnest($10::int[]) as timeout_ms,
       unnest($11::smallint[]) as priority, unnest($12::smallint[]) as cause, unnest($13::smallint[]) as delivery,
       unnest($14::boolean[]) as one_off, unnest($15::boolean[]) as has_dependents, unnest($16::bigint[]) as limit_key
   )
   ${insertRuns('u', run)}
   on conflict do nothing
   returning job_id, nominal_at`

const INSERT_READY = statement('insert_ready_runs', insertText({ state: RUN_STATE.ready }))
const INSERT_BLOCKED = statement('insert_blocked_runs', insertText({ state: RUN_STATE.blocked }))
const IS_AWAITED = 'exists (select from belfry.edges e where e.shard = b.shard and e.parent = b.job_id offset 0)'
const INSERT_DEPENDENT = statement(
  'insert_dependent_runs',
  insertText({ state: RUN_STATE.dependent, hasDependents: IS_AWAITED }),
)

/** A run as it becomes ready: everything that claiming and leasing need, and nothing else. */
export interface ReadyRun {
  shard: number
  jobId: string
  nominalAt: Instant
  dueAt: Instant
  turn: number
  tenantId: number
  queueId: number
  jobVersion: number
  /** Attempts so far: 0 for a new run; a reopened one goes on counting. */
  attempt: number
  timeoutMs: number
  priority: number
  cause: number
  delivery: number
  oneOff: boolean
  /** Other jobs wait for it. */
  hasDependents: boolean
  /** The limit that it shares with others. */
  limitKey: string | null
}

interface Born {
  jobId: string
  nominalAt: Instant
}

/** Answers the runs that were really born: a run of the same job and nominal time cannot exist twice. */
export function insertReadyRuns(db: Queryable, runs: readonly ReadyRun[]): Promise<Born[]> {
  return insert(db, INSERT_READY, runs)
}

/** The same for runs that wait for another run of their job to end. Their turn is given when they are woken. */
export function insertBlockedRuns(db: Queryable, runs: readonly ReadyRun[]): Promise<Born[]> {
  return insert(db, INSERT_BLOCKED, runs)
}

/** The same for one-offs that wait for other jobs again. Whether others wait for them is looked up. */
export function insertDependentRuns(db: Queryable, runs: readonly Omit<ReadyRun, 'hasDependents'>[]): Promise<Born[]> {
  const known = runs.map((run) => ({ ...run, hasDependents: false }))
  return insert(db, INSERT_DEPENDENT, known)
}

async function insert(db: Queryable, into: Statement, runs: readonly ReadyRun[]): Promise<Born[]> {
  if (runs.length === 0) return []
  const rows = await db.query<[string, Instant]>(into, [
    runs.map((run) => run.shard),
    runs.map((run) => run.jobId),
    runs.map((run) => run.nominalAt),
    runs.map((run) => run.dueAt),
    runs.map((run) => run.turn),
    runs.map((run) => run.tenantId),
    runs.map((run) => run.queueId),
    runs.map((run) => run.jobVersion),
    runs.map((run) => run.attempt),
    runs.map((run) => run.timeoutMs),
    runs.map((run) => run.priority),
    runs.map((run) => run.cause),
    runs.map((run) => run.delivery),
    runs.map((run) => run.oneOff),
    runs.map((run) => run.hasDependents),
    runs.map((run) => run.limitKey),
  ])
  return rows.map(([jobId, nominalAt]) => ({ jobId, nominalAt }))
}
