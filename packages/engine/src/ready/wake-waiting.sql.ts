import { RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Floors, floorsOf, turnAgain } from './turn-again.sql.ts'
import { NOTHING, type Woken } from './woken.ts'

/** In one statement: what is over comes in the next one. */
const MOST_AT_ONCE = 2_000

const WAKE = statement(
  'wake_waiting_runs',
  `with due as (
     select r.ctid
     from unnest($1::smallint[]) as s (shard) cross join lateral (
       select r.ctid from belfry.runs r
       where r.shard = s.shard and r.state = ${RUN_STATE.waiting} and r.due_at <= to_timestamp($2::float8 / 1000)
       order by r.due_at limit $3 for update skip locked) r
   )
   update belfry.runs r set state = ${RUN_STATE.ready}, gate_key = null, turn = ${turnAgain({ now: '$2', queueIds: '$4', starts: '$5' })}
   where r.ctid = any (array(select d.ctid from due d))
   returning r.queue_id, r.priority, r.delivery, r.turn`,
)

/** Makes runs of these shards ready whose backoff or snooze is over. */
export async function wakeWaiting(
  db: Queryable,
  shards: readonly number[],
  { now, floors }: { now: Instant; floors: Floors },
): Promise<Woken<number>> {
  if (shards.length === 0) return NOTHING
  const perShard = Math.ceil(MOST_AT_ONCE / shards.length)
  const rows = await db.query<[number, number, number, string]>(WAKE, [shards, now, perShard, ...floorsOf(floors)])
  const ready = rows.map(([queueId, priority, delivery, turn]) => ({ queueId, priority, delivery, turn: Number(turn) }))
  const again = ready.length < perShard ? [] : shards.map((name) => ({ name, at: now }))
  return { ...NOTHING, ready, again }
}
