import { OUTCOME } from '../job/states.ts'
import type { PackedLease } from '../leases/lease.ts'
import { packedArrays } from '../leases/receipts.sql.ts'
import type { ArrayValues } from '../store/arrays.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Answered, answers, type Finish, type Succeeded, times } from './finish.sql.ts'

/**
 * The two commonest ends of runs that stand in a receipt: there is no row to take, so history takes them while it is held.
 * Nothing but the receipt tells a second end from the first: who is not sure that this was carried out takes it apart first.
 */
const HELD_RECEIPTS = `with held as materialized (
     select c.holder, c.tenant_id, c.queue_id, c.leased_at from belfry.receipts c where c.holder = any($1::bigint[]) for key share skip locked
   )`
const SUCCEED_PACKED = statement(
  'finish_packed_succeeded',
  `${HELD_RECEIPTS}
   insert into belfry.attempts (nominal_at, due_at, leased_at, started_at, finished_at, holder, job_id, tenant_id, queue_id, job_version, number, shard,
     outcome, cause, counted, final)
   select to_timestamp(u.nominal_at / 1000), to_timestamp(u.due_at / 1000), h.leased_at, to_timestamp(u.started_at / 1000),
     to_timestamp(u.finished_at / 1000), h.holder, u.job_id, h.tenant_id, h.queue_id, u.job_version, 1, u.shard, ${OUTCOME.succeeded}, u.cause, true, true
   from (
     select unnest($2::bigint[]) as holder, unnest($3::int[]) as tenant_id, unnest($4::int[]) as queue_id, unnest($5::smallint[]) as shard,
       unnest($6::uuid[]) as job_id, unnest($7::float8[]) as nominal_at, unnest($8::float8[]) as due_at, unnest($9::int[]) as job_version,
       unnest($10::smallint[]) as cause, unnest($11::float8[]) as started_at, unnest($12::float8[]) as finished_at) u
   join held h on h.holder = u.holder and h.tenant_id = u.tenant_id and h.queue_id = u.queue_id`,
)
const ANSWERED_PACKED = statement(
  'finish_packed_answered',
  `${HELD_RECEIPTS}
   insert into belfry.attempts (nominal_at, due_at, leased_at, started_at, finished_at, holder, job_id, tenant_id, queue_id, job_version, number, shard,
     outcome, status_code, cause, counted, final, response)
   select to_timestamp(u.nominal_at / 1000), to_timestamp(u.due_at / 1000), h.leased_at, to_timestamp(u.started_at / 1000),
     to_timestamp(u.finished_at / 1000), h.holder, u.job_id, h.tenant_id, h.queue_id, u.job_version, 1, u.shard, ${OUTCOME.succeeded}, u.status_code,
     u.cause, true, true, u.response::json
   from (
     select unnest($2::bigint[]) as holder, unnest($3::int[]) as tenant_id, unnest($4::int[]) as queue_id, unnest($5::smallint[]) as shard,
       unnest($6::uuid[]) as job_id, unnest($7::float8[]) as nominal_at, unnest($8::float8[]) as due_at, unnest($9::int[]) as job_version,
       unnest($10::smallint[]) as cause, unnest($11::float8[]) as started_at, unnest($12::float8[]) as finished_at,
       unnest($13::smallint[]) as status_code, unnest(string_to_array($14::text, chr(30))) as response) u
   join held h on h.holder = u.holder and h.tenant_id = u.tenant_id and h.queue_id = u.queue_id`,
)

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
export function finishPackedSucceeded(db: Queryable, items: readonly Succeeded[]): Promise<number> {
  return db.execute(SUCCEED_PACKED, arraysOf(items))
}

export function finishPackedAnswered(db: Queryable, items: readonly Answered[]): Promise<number> {
  return db.execute(ANSWERED_PACKED, [...arraysOf(items), ...answers(items)])
}
