import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** The request shortens the lease and ends its extension; the reaper closes what the worker does not. */
const ASK = statement(
  'ask_leased_runs_to_stop',
  `update belfry.runs r set cancel_requested = true, lease_until = least(r.lease_until, to_timestamp($4::float8 / 1000))
   where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000)) and r.state = ${RUN_STATE.leased}
     and r.cause <> all ($5::smallint[])
   returning r.nominal_at`,
)

/** Answers the nominal times of those that were asked; again, if they had been before. */
export async function askToStop(
  tx: Queryable,
  run: { shard: number; jobId: string; nominalAt: Instant | null; exceptCauses?: readonly number[] },
  graceUntil: Instant,
): Promise<Instant[]> {
  const { shard, jobId, nominalAt, exceptCauses = [] } = run
  return (await tx.query<[Instant]>(ASK, [shard, jobId, nominalAt, graceUntil, exceptCauses])).flat()
}
