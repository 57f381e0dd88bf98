import { OUTCOME } from '../job/states.ts'
import type { PackedLease } from '../leases/lease.ts'
import { packedArrays } from '../leases/receipts.sql.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { tellDependents } from '../store/tell-dependents.ts'
import { type Answered, answers, type Finish, type Succeeded, times } from './finish.sql.ts'

/**
 * The two commonest ends of runs that stand in a receipt: there is no row to take, so history takes them while it is held.
 * Nothing but the receipt tells a second end from the first: who is not sure that this was carried out takes it apart first.
 */
const HELD_RECEIPTS = `with held as materialized (
     select c.holder, c.tenant_id, c.queue_id, c.leased_at from belfry.receipts c where c.holder = any($1::bigint[]) for key share skip locked
   )`
const ended = (answer: string): string =>
  `select to_timestamp(u.nominal_ms / 1000) as nominal_at, h.leased_at, u.* from (
       select unnest($2::bigint[]) as holder, unnest($3::int[]) as tenant_id, unnest($4::int[]) as queue_id,
         unnest($5::smallint[]) as shard, unnest($6::uuid[]) as job_id, unnest($7::float8[]) as nominal_ms, unnest($8::float8[]) as due_ms,
         unnest($9::int[]) as job_version, unnest($10::smallint[]) as cause, unnest($11::float8[]) as started_ms,
         unnest($12::float8[]) as finished_ms${answer}) u
     join held h on h.holder = u.holder and h.tenant_id = u.tenant_id and h.queue_id = u.queue_id`
const END = {
  succeeded: { answer: '', columns: '', values: '' },
  answered: {
    answer: ', unnest($13::smallint[]) as status_code, unnest(string_to_array($14::text, chr(30))) as response',
    columns: ', status_code, response',
    values: ', e.status_code, e.response::json',
  },
}
const keep = (rows: string, end: keyof typeof END): string =>
  `insert into belfry.attempts (nominal_at, due_at, leased_at, started_at, finished_at, holder, job_id, tenant_id, queue_id, job_version, number, shard,
     outcome, cause, counted, final${END[end].columns})
   select e.nominal_at, to_timestamp(e.due_ms / 1000), e.leased_at, to_timestamp(e.started_ms / 1000), to_timestamp(e.finished_ms / 1000), e.holder,
     e.job_id, e.tenant_id, e.queue_id, e.job_version, 1, e.shard, ${OUTCOME.succeeded}, e.cause, true, true${END[end].values}
   from ${rows} e`
const quietly = (end: keyof typeof END): string => `${HELD_RECEIPTS} ${keep(`(${ended(END[end].answer)})`, end)}`
/** The same for runs that others wait for; all of them are one-offs. */
const andTell = (end: keyof typeof END): string =>
  `${HELD_RECEIPTS}, ended as materialized (
     ${ended(END[end].answer)}
   ), told as (
     ${tellDependents('(select e.*, true as one_off, true as has_dependents from ended e)', { number: '1', outcome: OUTCOME.succeeded })}
   ) ${keep('ended', end)}`

const SUCCEED = {
  quietly: statement('finish_packed_succeeded', quietly('succeeded')),
  andTell: statement('finish_packed_succeeded_and_tell', andTell('succeeded')),
}
const ANSWER = {
  quietly: statement('finish_packed_answered', quietly('answered')),
  andTell: statement('finish_packed_answered_and_tell', andTell('answered')),
}

/** Whether others wait for these runs. */
export type Telling = keyof typeof SUCCEED

const arraysOf = (items: readonly Finish[]): ArrayValues[] => {
  const leases = items.map((item) => item.fence as PackedLease)
  return [
    ...packedArrays(leases),
    leases.map((lease) => lease.jobVersion),
    leases.map((lease) => lease.packed.cause),
    ...times(items),
  ]
}

/** Each answers how many ended. */
export function finishPackedSucceeded(db: Queryable, items: readonly Succeeded[], telling: Telling): Promise<number> {
  return db.execute(SUCCEED[telling], arraysOf(items))
}

export function finishPackedAnswered(db: Queryable, items: readonly Answered[], telling: Telling): Promise<number> {
  return db.execute(ANSWER[telling], [...arraysOf(items), ...answers(items)])
}
