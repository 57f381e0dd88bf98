import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK, NOW } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'

/** The request shortens the lease and ends its extension; the reaper closes what the worker does not. */
const ASK = statement(
  'ask_leased_runs_to_stop',
  `with ${CLOCK}
   update belfry.runs r set cancel_requested = true, lease_until = least(r.lease_until, to_timestamp((${NOW} + $4::int) / 1000))
   where r.shard = $1 and r.job_id = $2 and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000)) and r.state = ${RUN_STATE.leased}
     and r.cause <> all ($5::smallint[])
   returning r.nominal_at`,
)

/** Answers the nominal times of those that were asked; again, if they had been before. */
export async function askToStop(
  tx: Queryable,
  run: { shard: number; jobId: string; nominalAt: Instant | null; exceptCauses?: readonly number[] },
  graceMs: number,
): Promise<Instant[]> {
  const { shard, jobId, nominalAt, exceptCauses = [] } = run
  return (await tx.query<[Instant]>(ASK, [shard, jobId, nominalAt, graceMs, exceptCauses])).flat()
}
