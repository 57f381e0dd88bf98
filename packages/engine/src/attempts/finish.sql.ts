import { FAILURE_CLASS, OUTCOME, RUN_STATE } from '../job/states.ts'
import { fenceArrays, IS_OF_FENCE } from '../leases/heartbeat.sql.ts'
import type { Fence } from '../leases/lease.ts'
import { NO_LEASE } from '../leases/take-lease.ts'
import type { Instant } from '../runtime/clock.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { appendAttempts, ENDED_LEASE, recordEnds } from '../store/record-ends.ts'
import { type Statement, statement } from '../store/statement.ts'

/**
 * How attempts end. Each statement takes its rows by their fence, passes over locked ones, removes or changes the run and
 * appends to history at once; what it does not count has not ended, and is looked at again by the finisher. That covers
 * the ctid too, which saves one look-up per run and leaves no plan a choice: after a concurrent heartbeat the lock returns a
 * version that the statement's snapshot cannot see, so nothing is changed, and the live finish goes into the next batch.
 */
/** Of each attempt: its fence, and when it began and ended. */
const GIVEN = `unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder, unnest($6::float8[]) as started_at, unnest($7::float8[]) as finished_at`
/** What is written to history is counted by what is gone: its rows need not be handed on. */
const HOW_MANY = 'select (select count(*)::int from gone), (select count(*)::int from told)'

/** The commonest end by far: a first attempt that succeeded and left nothing else to write. */
const SUCCEED = statement(
  'finish_succeeded',
  `with u as (
     select ${GIVEN}
   ), held as (
     select r.ctid, u.started_at, u.finished_at
     from u cross join lateral (
       select r.ctid from belfry.runs r where ${IS_OF_FENCE} limit 1 for update skip locked) r
   ), gone as (
     delete from belfry.runs r using held h where r.ctid = h.ctid returning ${ENDED_LEASE}, h.started_at, h.finished_at
   ), ${recordEnds({ outcome: OUTCOME.succeeded })}
   ${HOW_MANY}`,
)

/** The same for an HTTP call, which leaves what its target answered. */
const ANSWERED = statement(
  'finish_answered',
  `with u as (
     select ${GIVEN}, unnest($8::smallint[]) as status_code, unnest(string_to_array($9::text, chr(30))) as response
   ), held as (
     select r.ctid, u.started_at, u.finished_at, u.status_code, u.response
     from u cross join lateral (
       select r.ctid from belfry.runs r where ${IS_OF_FENCE} limit 1 for update skip locked) r
   ), gone as (
     delete from belfry.runs r using held h where r.ctid = h.ctid
     returning ${ENDED_LEASE}, h.started_at, h.finished_at, h.status_code, h.response
   ), ${recordEnds({ outcome: OUTCOME.succeeded, statusCode: 'e.status_code', response: 'e.response::json' })}
   ${HOW_MANY}`,
)

/** How an attempt ended that did more than succeed: given, and written to history. */
const JUDGED = `unnest($8::smallint[]) as outcome, unnest($9::smallint[]) as failure_class, unnest($10::smallint[]) as status_code,
       unnest($11::text[]) as error, unnest($12::text[]) as response`
const AS_JUDGED = {
  ...{ outcome: 'e.outcome', failureClass: 'e.failure_class', statusCode: 'e.status_code' },
  ...{ error: 'e.error', response: 'e.response::json' },
}

/** Every other end of a run. A failed or lost one leaves a dead letter. */
const END = statement(
  'finish_final',
  `with u as (
     select ${GIVEN}, ${JUDGED},
       unnest($13::text[]) as result, unnest($14::float8[]) as lease_until
   ), held as (
     select r.ctid, u.started_at, u.finished_at, u.outcome, u.failure_class, u.status_code, u.error, u.response, u.result
     from u cross join lateral (
       select r.ctid from belfry.runs r
       where ${IS_OF_FENCE} and (u.lease_until is null or r.lease_until = to_timestamp(u.lease_until / 1000)) limit 1 for update skip locked) r
   ), gone as (
     delete from belfry.runs r using held h where r.ctid = h.ctid
     returning ${ENDED_LEASE}, r.failures, r.timeout_ms, r.priority, r.delivery, r.limit_key, h.started_at, h.finished_at, h.outcome, h.failure_class,
       h.status_code, h.error, h.response, h.result
   ), unchecked as (
     delete from belfry.checkpoints c using gone g where c.shard = g.shard and c.job_id = g.job_id and c.nominal_at = g.nominal_at
   ), dead as (
     insert into belfry.dead_letters (nominal_at, due_at, died_at, job_id, tenant_id, queue_id, job_version, attempt, failures, timeout_ms, shard, priority,
       cause, delivery, failure_class, one_off, error, has_dependents, limit_key)
     select g.nominal_at, g.due_at, to_timestamp(g.finished_at / 1000), g.job_id, g.tenant_id, g.queue_id, g.job_version, g.attempt, g.failures + 1,
       g.timeout_ms, g.shard, g.priority, g.cause, g.delivery, g.failure_class, g.one_off, g.error, g.has_dependents, g.limit_key
     from gone g where g.outcome in (${OUTCOME.failed}, ${OUTCOME.lost})
     on conflict do nothing
   ), ${recordEnds({ ...AS_JUDGED, result: 'e.result::json' })}
   ${HOW_MANY}`,
)

/** The attempt ends, the run goes on: it waits for its backoff, or is ready again. One that was asked to stop does not go on. */
const AGAIN = statement(
  'finish_again',
  `with u as (
     select ${GIVEN}, ${JUDGED},
       unnest($13::boolean[]) as counted, unnest($14::float8[]) as next_due, unnest($15::bigint[]) as turn, unnest($16::float8[]) as lease_until,
       unnest($17::bigint[]) as gate_key
   ), held as (
     select r.ctid, r.due_at, r.leased_at, r.holder, u.started_at, u.finished_at, u.outcome, u.failure_class, u.status_code, u.error, u.response,
       u.counted, u.next_due, u.turn, u.gate_key
     from u cross join lateral (
       select r.ctid, r.due_at, r.leased_at, r.holder from belfry.runs r
       where ${IS_OF_FENCE} and not r.cancel_requested and (u.lease_until is null or r.lease_until = to_timestamp(u.lease_until / 1000))
       limit 1 for update skip locked) r
   ), kept as (
     update belfry.runs r set ${NO_LEASE}, gate_key = h.gate_key,
       failures = r.failures + case when h.counted then 1 else 0 end,
       failure_class = case when h.counted then h.failure_class else r.failure_class end,
       state = case when h.turn is null then ${RUN_STATE.waiting} else ${RUN_STATE.ready} end,
       turn = coalesce(h.turn, r.turn), due_at = to_timestamp(h.next_due / 1000)
     from held h where r.ctid = h.ctid
     returning r.nominal_at, h.due_at, h.leased_at, h.started_at, h.finished_at, h.holder, r.job_id, r.tenant_id, r.queue_id, r.job_version, r.attempt,
       r.shard, r.cause, h.outcome, h.failure_class, h.status_code, h.error, h.response, h.counted
   )
   ${appendAttempts('kept', { ...AS_JUDGED, counted: 'e.counted', final: 'false' })}`,
)

/**
 * Which of these attempts history knows, by their place: two that say different things of the same attempt, its worker and the
 * reaper, may stand in one batch.
 */
const LOOK = statement(
  'look_at_attempts',
  `select u.place::int
   from unnest($1::smallint[], $2::uuid[], $3::float8[], $4::int[], $5::bigint[], $6::smallint[]) with ordinality
     as u (shard, job_id, nominal_at, attempt, holder, outcome, place)
   cross join lateral (
     select from belfry.attempts a
     where a.shard = u.shard and a.job_id = u.job_id and a.nominal_at = to_timestamp(u.nominal_at / 1000)
       and a.finished_at >= to_timestamp(u.nominal_at / 1000) - interval '1 day' and a.number = u.attempt and a.holder = u.holder
       and a.outcome = u.outcome limit 1) a`,
)

interface EndedAttempt {
  fence: Fence
  startedAt: Instant | null
  finishedAt: Instant
  /** The reaper's: the lease must still be the one that was seen to have expired. */
  leaseUntil?: Instant
}

export interface Succeeded extends EndedAttempt {
  kind: 'succeeded'
}
export interface Answered extends EndedAttempt {
  kind: 'answered'
  statusCode: number
  /** JSON as `JSON.stringify` writes it: no control character in it. */
  response: string
}
interface Judged extends EndedAttempt {
  outcome: number
  failureClass: keyof typeof FAILURE_CLASS | null
  statusCode: number | null
  error: string | null
  /** What an HTTP target answered, as JSON. */
  response?: string | null
}
export interface Ended extends Judged {
  kind: 'ended'
  /** JSON. */
  result: string | null
}
export interface GoesOn extends Judged {
  kind: 'goes_on'
  counted: boolean
  nextDueAt: Instant
  /** Given: ready at once. Null: waiting until `nextDueAt`. */
  turn: number | null
  /** What puts the run aside until then, and may let it come earlier. */
  gateKey?: string | undefined
}
export type Finish = Succeeded | Answered | Ended | GoesOn

const outcomeOf = (finish: Finish): number =>
  finish.kind === 'succeeded' || finish.kind === 'answered' ? OUTCOME.succeeded : finish.outcome

const fencesOf = (items: readonly Finish[]): Fence[] => items.map((item) => item.fence)
const times = (items: readonly Finish[]): ArrayValues[] => [
  items.map((item) => item.startedAt),
  items.map((item) => item.finishedAt),
]
const classes = (items: readonly (Ended | GoesOn)[]): ArrayValues[] => [
  items.map((item) => item.outcome),
  items.map((item) => (item.failureClass === null ? null : FAILURE_CLASS[item.failureClass])),
  items.map((item) => item.statusCode),
  items.map((item) => item.error),
  items.map((item) => item.response ?? null),
]
const leaseUntils = (items: readonly Finish[]): ArrayValues => items.map((item) => item.leaseUntil ?? null)

/** How many ended, and how many of those somebody waits for. */
export interface Ends {
  ended: number
  told: number
}

async function end(db: Queryable, by: Statement, values: readonly unknown[]): Promise<Ends> {
  const [[ended, told] = [0, 0]] = await db.query<[number, number]>(by, values)
  return { ended, told }
}

/** Which ones ended is asked only when some did not. Items are unique and in lock order. */
export function finishSucceeded(db: Queryable, items: readonly Succeeded[]): Promise<Ends> {
  return end(db, SUCCEED, [...fenceArrays(fencesOf(items)), ...times(items)])
}

export function finishAnswered(db: Queryable, items: readonly Answered[]): Promise<Ends> {
  return end(db, ANSWERED, [...fenceArrays(fencesOf(items)), ...times(items), ...answers(items)])
}

/** What JSON never holds separates them: escaping a thousand answers costs more than storing them. */
const SEPARATOR = '\x1e'
const answers = (items: readonly Answered[]): [codes: ArrayValues, responses: string] => [
  items.map((item) => item.statusCode),
  items.map((item) => item.response).join(SEPARATOR),
]

export function finishEnded(db: Queryable, items: readonly Ended[]): Promise<Ends> {
  return end(db, END, [
    ...fenceArrays(fencesOf(items)),
    ...times(items),
    ...classes(items),
    items.map((item) => item.result),
    leaseUntils(items),
  ])
}

export function finishGoesOn(db: Queryable, items: readonly GoesOn[]): Promise<number> {
  return db.execute(AGAIN, [
    ...fenceArrays(fencesOf(items)),
    ...times(items),
    ...classes(items),
    items.map((item) => item.counted),
    items.map((item) => item.nextDueAt),
    items.map((item) => item.turn),
    leaseUntils(items),
    items.map((item) => item.gateKey ?? null),
  ])
}

/** Those of the items that history knows to have ended just so: asked when the answer to a finish was lost. */
export async function lookAtAttempts<Item extends Finish>(db: Queryable, items: readonly Item[]): Promise<Set<Item>> {
  const values = [...fenceArrays(fencesOf(items)), items.map(outcomeOf)]
  return new Set((await db.query<[number]>(LOOK, values)).map(([place]) => items[place - 1] as Item))
}
