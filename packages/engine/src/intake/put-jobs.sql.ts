import { DEFAULT_TENANT } from '../job/definition.ts'
import { CAUSE, RUN_STATE } from '../job/states.ts'
import { insertRuns } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { type Statement, statement } from '../store/statement.ts'

/**
 * A tenant may be deleted while a node still knows it: the insert itself looks, once per statement, which tenants of the batch
 * are there. A deletion waits for inserts that began before it. `default` cannot be deleted, so its jobs do not pay for this.
 */
const ofLivingTenants = (tenantIds: string): string =>
  `where u.tenant_id = any(array(select n.id from belfry.tenants n where n.id = any(${tenantIds}::int[]) and n.deletion is null))`

/** Definitions are joined by line feeds, which JSON never holds as they are: nothing is quoted, here or there. */
const jobs = (condition: string): string => `
   with u as (
     select * from (select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::int[]) as tenant_id, unnest($4::int[]) as queue_id,
       unnest($5::int[]) as timeout_ms, unnest($6::smallint[]) as priority, unnest($7::smallint[]) as delivery, unnest($8::text[]) as name,
       unnest(string_to_array($9, E'\\n')) as definition, unnest($10::float8[]) as due_at, unnest($11::bigint[]) as turn,
       unnest($13::bigint[]) as limit_key, unnest($14::int[]) as fairness_key, unnest($15::boolean[]) as has_dependents,
       unnest($16::smallint[]) as state) u
     ${condition})`
const JOBS = jobs('')
const JOBS_OF_TENANTS = jobs(ofLivingTenants('$17'))

const SPECS = `
     insert into belfry.specs (updated_at, job_id, tenant_id, version, shard, name, definition)
     select to_timestamp($12::float8 / 1000), u.job_id, u.tenant_id, 1, u.shard, u.name, u.definition::json from u`

const DUE_AT = 'to_timestamp(b.due_at / 1000)'
const RUNS = `
   ${insertRuns('u', {
     ...{ state: `coalesce(b.state, ${RUN_STATE.ready})`, nominalAt: DUE_AT, dueAt: DUE_AT, jobVersion: 1, attempt: 0 },
     ...{ cause: CAUSE.create, oneOff: true, hasDependents: 'coalesce(b.has_dependents, false)' },
   })}`

const TIMERS = `
   insert into belfry.timers (due_at, nominal_at, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, shard, priority, overlap, delivery,
     limit_key, fairness_key, has_dependents)
   select to_timestamp(greatest(u.due_at, $12::float8) / 1000), to_timestamp(u.due_at / 1000), u.job_id, 1, 1, u.tenant_id, u.queue_id, u.timeout_ms, 0,
     u.shard, u.priority, 0, u.delivery, u.limit_key, u.fairness_key, coalesce(u.has_dependents, false)
   from u`

/**
 * Ids that were sent before may be there: the insert of the definition then feeds the run or the timer, so sending them again
 * is harmless, even after the run has finished. \`(… in (…)) is true\` is looked up in a hash, not joined row by row.
 */
const FRESH = `, fresh as (${SPECS} on conflict do nothing returning job_id)`
const IF_FRESH = 'where (job_id in (select fresh.job_id from fresh)) is true'

interface Puts {
  ofDefault: Statement
  ofTenants: Statement
}

/** Of ids that nobody has sent before nothing is there to be compared, which spares a fifth of the work. */
const PUT_IMMEDIATE: Record<Sending, Puts> = {
  first: {
    ofDefault: statement('put_immediate_jobs', `${JOBS}, fresh as (${SPECS})${RUNS}`),
    ofTenants: statement('put_immediate_jobs_of_tenants', `${JOBS_OF_TENANTS}, fresh as (${SPECS})${RUNS}`),
  },
  again: {
    ofDefault: statement('put_immediate_jobs_again', `${JOBS}${FRESH}${RUNS} ${IF_FRESH}`),
    ofTenants: statement('put_immediate_jobs_of_tenants_again', `${JOBS_OF_TENANTS}${FRESH}${RUNS} ${IF_FRESH}`),
  },
}
const PUT_DELAYED: Record<Sending, Puts> = {
  first: {
    ofDefault: statement('put_delayed_jobs', `${JOBS}, fresh as (${SPECS})${TIMERS}`),
    ofTenants: statement('put_delayed_jobs_of_tenants', `${JOBS_OF_TENANTS}, fresh as (${SPECS})${TIMERS}`),
  },
  again: {
    ofDefault: statement('put_delayed_jobs_again', `${JOBS}${FRESH}${TIMERS} ${IF_FRESH}`),
    ofTenants: statement('put_delayed_jobs_of_tenants_again', `${JOBS_OF_TENANTS}${FRESH}${TIMERS} ${IF_FRESH}`),
  },
}

const recurring = (condition: string): string => `
   with u as (
     select * from (select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::int[]) as tenant_id, unnest($4::int[]) as queue_id,
       unnest($5::int[]) as timeout_ms, unnest($6::smallint[]) as priority, unnest($7::smallint[]) as delivery, unnest($8::text[]) as name,
       unnest(string_to_array($9, E'\\n')) as definition, unnest($10::float8[]) as due_at, unnest($11::float8[]) as nominal_at,
       unnest($12::bigint[]) as schedule_id, unnest($13::smallint[]) as overlap, unnest($14::int[]) as jitter_ms, unnest($15::int[]) as max_runs,
       unnest($17::bigint[]) as limit_key, unnest($18::int[]) as fairness_key, unnest($19::boolean[]) as has_dependents) u
     ${condition}), fresh as (
     insert into belfry.jobs (updated_at, id, tenant_id, version, shard, status, name, definition)
     select to_timestamp($16::float8 / 1000), u.job_id, u.tenant_id, 1, u.shard, 0, u.name, u.definition::json from u
     on conflict do nothing returning id
   )
   insert into belfry.timers (due_at, nominal_at, schedule_id, job_id, version, job_version, tenant_id, queue_id, timeout_ms, jitter_ms, remaining_runs, shard,
     priority, overlap, delivery, limit_key, fairness_key, has_dependents)
   select to_timestamp(u.due_at / 1000), to_timestamp(u.nominal_at / 1000), u.schedule_id, u.job_id, 1, 1, u.tenant_id, u.queue_id, u.timeout_ms, u.jitter_ms,
     u.max_runs, u.shard, u.priority, u.overlap, u.delivery, u.limit_key, u.fairness_key, coalesce(u.has_dependents, false)
   from u where (u.job_id in (select fresh.id from fresh)) is true`
const PUT_RECURRING: Puts = {
  ofDefault: statement('put_recurring_jobs', recurring('')),
  ofTenants: statement('put_recurring_jobs_of_tenants', recurring(ofLivingTenants('$20'))),
}

const LIVING = statement(
  'living_tenants',
  'select n.id from belfry.tenants n where n.id = any($1::int[]) and n.deletion is null',
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
  /** The limit that its runs share with others. */
  limitKey: string | null
  fairnessKey: number | null
  /** Other jobs wait for it. */
  hasDependents: boolean
}
export interface NewOneOff extends NewJob {
  kind: 'immediate' | 'delayed'
  dueAt: Instant
  turn: number | null
  /** Born ready unless something else is said. */
  state: number
}
export interface NewRecurring extends NewJob {
  kind: 'recurring'
  dueAt: Instant
  /** Null: it follows other jobs, and has no schedule. */
  nominalAt: Instant | null
  scheduleId: string | null
  overlap: number
  jitterMs: number
  maxRuns: number | null
}

const commonArrays = (jobs: readonly NewJob[]): (ArrayValues | string)[] => [
  jobs.map((job) => job.shard),
  jobs.map((job) => job.jobId),
  jobs.map((job) => job.tenantId),
  jobs.map((job) => job.queueId),
  jobs.map((job) => job.timeoutMs),
  jobs.map((job) => job.priority),
  jobs.map((job) => job.delivery),
  jobs.map((job) => job.name),
  jobs.map((job) => job.definitionJson).join('\n'),
]

/** Of what most jobs have as usual, an array that is too short is filled up with null. */
const rare = <Job, Value extends ArrayValues[number]>(
  jobs: readonly Job[],
  usual: Value,
  of: (job: Job) => Value,
): ArrayValues => (jobs.some((job) => of(job) !== usual) ? jobs.map(of) : [])

const rareArrays = (jobs: readonly NewJob[]): ArrayValues[] => [
  rare(jobs, null, (job) => job.limitKey),
  rare(jobs, null, (job) => job.fairnessKey),
  rare(jobs, false, (job) => job.hasDependents),
]

const oneOffValues = (jobs: readonly NewOneOff[], now: Instant): unknown[] => [
  ...commonArrays(jobs),
  jobs.map((job) => job.dueAt),
  jobs.map((job) => job.turn),
  now,
  ...rareArrays(jobs),
  rare(jobs, RUN_STATE.ready as number, (job) => job.state),
]

/** Jobs as they will be sent. Answers how many it made: fewer if some were there already, or their tenant is gone. */
export type PutJobs = (db: Queryable) => Promise<number>

export const putImmediate = (jobs: readonly NewOneOff[], now: Instant, sending: Sending = 'again'): PutJobs =>
  put(PUT_IMMEDIATE[sending], jobs, oneOffValues(jobs, now))

export const putDelayed = (jobs: readonly NewOneOff[], now: Instant, sending: Sending = 'again'): PutJobs =>
  put(PUT_DELAYED[sending], jobs, oneOffValues(jobs, now))

export const putRecurring = (jobs: readonly NewRecurring[], now: Instant): PutJobs =>
  put(PUT_RECURRING, jobs, [
    ...commonArrays(jobs),
    jobs.map((job) => job.dueAt),
    jobs.map((job) => job.nominalAt),
    jobs.map((job) => job.scheduleId),
    jobs.map((job) => job.overlap),
    jobs.map((job) => job.jitterMs),
    jobs.map((job) => job.maxRuns),
    now,
    ...rareArrays(jobs),
  ])

function put(puts: Puts, jobs: readonly NewJob[], values: readonly unknown[]): PutJobs {
  if (jobs.every((job) => job.tenantId === DEFAULT_TENANT)) return (db) => db.execute(puts.ofDefault, values)
  const ofTenants = [...values, tenantsOf(jobs)]
  return (db) => db.execute(puts.ofTenants, ofTenants)
}

/** Which of the tenants of these jobs are there, and stay. */
export async function livingTenants(db: Queryable, jobs: readonly NewJob[]): Promise<Set<number>> {
  return new Set((await db.query<[number]>(LIVING, [tenantsOf(jobs)])).map(([id]) => id))
}

const tenantsOf = (jobs: readonly NewJob[]): ArrayValues => [...new Set(jobs.map((job) => job.tenantId))]
