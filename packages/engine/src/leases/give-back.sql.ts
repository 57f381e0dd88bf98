import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { fenceArrays, IS_OF_FENCE } from './heartbeat.sql.ts'
import type { Fence } from './lease.ts'
import { NO_LEASE } from './take-lease.ts'

const BACK = columns({
  jobId: column<string>('r.job_id'),
  nominalAt: column<Instant>('r.nominal_at'),
  queueId: column<number>('r.queue_id'),
  priority: column<number>('r.priority'),
  delivery: column<number>('r.delivery'),
  turn: column<string>('r.turn'),
})

/**
 * The run is ready in its turn, as before it was leased. The attempt's number is used up; history has nothing of it. One that was
 * asked to stop is left to the end that it was asked for.
 */
const GIVE_BACK = statement(
  'give_back_runs',
  `with u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::float8[]) as nominal_at, unnest($4::int[]) as attempt,
       unnest($5::bigint[]) as holder
   ), held as (
     select r.ctid from u cross join lateral (
       select r.ctid from belfry.runs r where ${IS_OF_FENCE} and not r.cancel_requested limit 1 for update skip locked) r
   )
   update belfry.runs r set state = ${RUN_STATE.ready}, ${NO_LEASE}, gate_key = null from held h where r.ctid = h.ctid
   returning ${BACK.text}`,
)

export type GivenBack = Omit<Read<typeof BACK>, 'turn'> & { turn: number }

/** Gives back attempts that have not begun; answers the runs that are ready. Fences are unique and in lock order. */
export async function giveBackRuns(db: Queryable, fences: readonly Fence[]): Promise<GivenBack[]> {
  const rows = await db.query<RowOf<Read<typeof BACK>>>(GIVE_BACK, fenceArrays(fences))
  return rows.map((row) => ({ ...BACK.read(row), turn: Number(BACK.get(row, 'turn')) }))
}
