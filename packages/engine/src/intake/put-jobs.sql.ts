import { CAUSE, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { ids, instants, numbers, texts } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Definitions are joined by line feeds, which JSON never holds as they are: nothing is quoted, here or there. */
const JOBS = `
   with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::int[], $5::int[], $6::smallint[], $7::smallint[], $8::text[],
       string_to_array($9, E'\\n'), $10::float8[], $11::bigint[])
       as u (shard, job_id, tenant_id, queue_id, timeout_ms, priority, delivery, name, definition, due_at, turn)
   )`

const SPECS = `
     insert into belfry.specs (updated_at, job_id, tenant_id, version, shard, name, definition)
     select to_timestamp($12::float8 / 1000), u.job_id, u.tenant_id, 1, u.shard, u.name, u.definition::json from u`

const RUNS = `
   insert into belfry.runs (nominal_at, due_at, turn, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, state, priority, cause,
     delivery, one_off, cancel_requested, has_dependents)
   select to_timestamp(u.due_at / 1000), to_timestamp(u.due_at / 1000), u.turn, u.job_id, u.tenant_id, u.queue_id, 1, 0, 0, u.timeout_ms, u.shard,
     ${RUN_STATE.ready}, u.priority, ${CAUSE.create}, u.delivery, true, false, false
   from u`

const TIMERS = `
   insert into belfry.timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery)
   select to_timestamp(greatest(u.due_at, $12::float8) / 1000), to_timestamp(u.due_at / 1000), u.job_id, 1, 1, u.tenant_id, u.queue_id, u.timeout_ms, 0,
     u.shard, u.priority, 0, u.delivery
   from u`

/**
 * Ids that were sent before may be there: the insert of the definition then feeds the run or the timer, so sending them again
 * is harmless, even after the run has finished. \`(… in (…)) is true\` is looked up in a hash, not joined row by row.
 */
const FRESH = `, fresh as (${SPECS} on conflict do nothing returning job_id)`
const IF_FRESH = 'where (u.job_id in (select fresh.job_id from fresh)) is true'

/** Of ids that nobody has sent before nothing is there to be compared, which spares a fifth of the work. */
const PUT_IMMEDIATE = {
  first: statement('put_immediate_jobs', `${JOBS}, fresh as (${SPECS})${RUNS}`),
  again: statement('put_immediate_jobs_again', `${JOBS}${FRESH}${RUNS} ${IF_FRESH}`),
}
const PUT_DELAYED = {
  first: statement('put_delayed_jobs', `${JOBS}, fresh as (${SPECS})${TIMERS}`),
  again: statement('put_delayed_jobs_again', `${JOBS}${FRESH}${TIMERS} ${IF_FRESH}`),
}

const PUT_RECURRING = statement(
  'put_recurring_jobs',
  `with u as (
     select * from unnest($1::smallint[], $2::uuid[], $3::int[], $4::int[], $5::int[], $6::smallint[], $7::smallint[], $8::text[],
       string_to_array($9, E'\\n'), $10::float8[], $11::float8[], $12::bigint[], $13::smallint[], $14::int[], $15::int[])
       as u (shard, job_id, tenant_id, queue_id, timeout_ms, priority, delivery, name, definition, due_at, nominal_at, schedule_id, overlap, jitter_ms, max_runs)
   ), fresh as (
     insert into belfry.jobs (updated_at, id, tenant_id, version, shard, status, name, definition)
     select to_timestamp($16::float8 / 1000), u.job_id, u.tenant_id, 1, u.shard, 0, u.name, u.definition::json from u
     on conflict do nothing returning id
   )
   insert into belfry.timers (due_at, nominal_at, schedule_id, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, remaining_runs, shard,
     priority, overlap, delivery)
   select to_timestamp(u.due_at / 1000), to_timestamp(u.nominal_at / 1000), u.schedule_id, u.job_id, 1, 1, u.tenant_id, u.queue_id, u.timeout_ms, u.jitter_ms,
     u.max_runs, u.shard, u.priority, u.overlap, u.delivery
   from u where (u.job_id in (select fresh.id from fresh)) is true`,
)

/** Whether the same ids may have been sent before: by a try whose outcome is unknown, or by somebody else. */
export type Sending = 'first' | 'again'

interface NewJob {
  shard: number
  jobId: string
  tenantId: number
  queueId: number
  timeoutMs: number
  priority: number
  delivery: number
  name: string | null
  definitionJson: string
}
export interface NewOneOff extends NewJob {
  kind: 'immediate' | 'delayed'
  dueAt: Instant
  turn: number | null
}
export interface NewRecurring extends NewJob {
  kind: 'recurring'
  dueAt: Instant
  nominalAt: Instant
  scheduleId: string
  overlap: number
  jitterMs: number
  maxRuns: number | null
}

const commonArrays = (jobs: readonly NewJob[]): string[] => [
  numbers(jobs.map((job) => job.shard)),
  ids(jobs.map((job) => job.jobId)),
  numbers(jobs.map((job) => job.tenantId)),
  numbers(jobs.map((job) => job.queueId)),
  numbers(jobs.map((job) => job.timeoutMs)),
  numbers(jobs.map((job) => job.priority)),
  numbers(jobs.map((job) => job.delivery)),
  texts(jobs.map((job) => job.name)),
  jobs.map((job) => job.definitionJson).join('\n'),
]

const oneOffArrays = (jobs: readonly NewOneOff[]): string[] => [
  ...commonArrays(jobs),
  instants(jobs.map((job) => job.dueAt)),
  numbers(jobs.map((job) => job.turn)),
]

export async function putImmediate(
  db: Queryable,
  jobs: readonly NewOneOff[],
  now: Instant,
  sending: Sending = 'again',
): Promise<void> {
  await db.query(PUT_IMMEDIATE[sending], [...oneOffArrays(jobs), now])
}

export async function putDelayed(
  db: Queryable,
  jobs: readonly NewOneOff[],
  now: Instant,
  sending: Sending = 'again',
): Promise<void> {
  await db.query(PUT_DELAYED[sending], [...oneOffArrays(jobs), now])
}

export async function putRecurring(db: Queryable, jobs: readonly NewRecurring[], now: Instant): Promise<void> {
  await db.query(PUT_RECURRING, [
    ...commonArrays(jobs),
    instants(jobs.map((job) => job.dueAt)),
    instants(jobs.map((job) => job.nominalAt)),
    numbers(jobs.map((job) => job.scheduleId)),
    numbers(jobs.map((job) => job.overlap)),
    numbers(jobs.map((job) => job.jitterMs)),
    numbers(jobs.map((job) => job.maxRuns)),
    now,
  ])
}
