import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'

const insertText = (state: number): string =>
  `insert into belfry.runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state,
     priority, cause, delivery, one_off, cancel_requested, has_dependents, limit_key)
   select to_timestamp(u.nominal_at / 1000), to_timestamp(u.due_at / 1000), u.turn, u.job_id, u.tenant_id, u.queue_id, u.job_version, u.attempt, 0,
     u.timeout_ms, u.shard, ${state}, u.priority, u.cause, u.delivery, u.one_off, false, u.has_dependents, u.limit_key
   from (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::float8[]) as due_at,
       unnest($5::bigint[]) as turn, unnest($6::int[]) as tenant_id, unnest($7::int[]) as queue_id, unnest($8::int[]) as job_version,
       unnest($9::int[]) as attempt, unnest($10::int[]) as timeout_ms, unnest($11::smallint[]) as priority, unnest($12::smallint[]) as cause,
       unnest($13::smallint[]) as delivery, unnest($14::boolean[]) as one_off, unnest($15::boolean[]) as has_dependents,
       unnest($16::bigint[]) as limit_key) u
   on conflict do nothing
   returning job_id, nominal_at`

const INSERT_READY = statement('insert_ready_runs', insertText(RUN_STATE.ready))
const INSERT_BLOCKED = statement('insert_blocked_runs', insertText(RUN_STATE.blocked))

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
