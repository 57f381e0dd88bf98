import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Floors, floorsOf, turnAgain } from './turn-again.sql.ts'
import { type MadeReady, NOTHING, type Woken } from './woken.ts'

/**
 * The oldest runs that wait for a slot of a key become ready, no more of each key than are free. Nothing is reserved by that:
 * the claim decides, under the key's lock; so no key is held here, and waking too many costs work, never a limit. A key without a
 * row gets it when it is claimed from. Keys that have a rate are only named: their runs are given times. Of a limit of 1 the next
 * one is woken if nothing older is alive; runs of paused queues are neither woken nor waited for.
 */
const WAKE = statement(
  'wake_limited_runs',
  `with paused as materialized (
     select array(select q.id from belfry.queues q where q.paused_at is not null) as queue_ids
   ), u as materialized (
     select u.shard, u.key, u.wanted from unnest($1::smallint[], $2::bigint[], $3::int[]) as u (shard, key, wanted)
     where exists (select from belfry.runs r where r.state = ${RUN_STATE.limited})
       and exists (select from belfry.runs r where r.shard = u.shard and r.limit_key = u.key and r.state = ${RUN_STATE.limited} offset 0)
   ), known as materialized (
     select u.shard, u.key, u.wanted, l.max_running, l.rate_count is not null as has_rate
     from u left join lateral (
       select l.key, l.max_running, l.rate_count, l.paused_at from belfry.limits l
       where l.shard = u.shard and l.kind = ${LIMIT_KIND.key} and l.key = u.key limit 1) l on true
     where l.paused_at is null
   ), free as materialized (
     select k.shard, k.key, k.max_running, coalesce(least(k.wanted, k.max_running - leased.count), k.wanted) as count
     from known k cross join lateral (
       select count(*) as count from (
         select from belfry.runs r where r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased}
         limit coalesce(k.max_running, 0)) l) leased
     where not k.has_rate
   ), next as (
     select n.ctid from paused cross join free f cross join lateral (
       select r.ctid, r.nominal_at from belfry.runs r
       where r.shard = f.shard and r.limit_key = f.key and r.state = ${RUN_STATE.limited} and r.queue_id <> all (paused.queue_ids)
       order by r.nominal_at limit greatest(f.count, 0) for update skip locked) n
     where f.max_running is distinct from 1 or not exists (
       select from belfry.runs r
       where r.shard = f.shard and r.limit_key = f.key and r.nominal_at < n.nominal_at
         and r.state in (${RUN_STATE.ready}, ${RUN_STATE.leased}, ${RUN_STATE.waiting}, ${RUN_STATE.limited}) and r.queue_id <> all (paused.queue_ids) offset 0)
   ), woken as (
     update belfry.runs r set state = ${RUN_STATE.ready}, turn = ${turnAgain({ now: '$4', queueIds: '$5', starts: '$6' })}
     where r.ctid = any (array(select n.ctid from next n))
     returning r.queue_id, r.priority, r.delivery, r.turn, r.limit_key
   )
   select w.queue_id, w.priority, w.delivery, w.turn, w.limit_key, null::smallint from woken w
   union all select null, null, null, null, k.key, k.shard from known k where k.has_rate`,
)

const ANY = statement(
  'any_limited_run',
  `select exists (select from belfry.runs r where r.state = ${RUN_STATE.limited})`,
)

export const anyLimited = async (db: Queryable): Promise<boolean> =>
  (await db.query<[boolean]>(ANY, []))[0]?.[0] === true

export interface KeyToWake {
  shard: number
  key: string
  /** So many at most: one for each slot that was freed. */
  wanted: number
}

/** Of one key. */
export const MOST_AT_ONCE = 1_000

export interface WokenOfKeys extends Woken<KeyToWake> {
  /** Keys that have a rate: their runs are given times. */
  rated: { shard: number; key: string }[]
}

export async function wakeLimited(
  db: Queryable,
  keys: readonly KeyToWake[],
  at: { now: Instant; floors: Floors },
): Promise<WokenOfKeys> {
  type Row = [number | null, number, number, string, string, number | null]
  const rows = await db.query<Row>(WAKE, [
    keys.map(({ shard }) => shard),
    keys.map(({ key }) => key),
    keys.map(({ wanted }) => wanted),
    at.now,
    ...floorsOf(at.floors),
  ])
  const ready: MadeReady[] = []
  const rated: WokenOfKeys['rated'] = []
  const counts = new Map<string, number>()
  for (const [queueId, priority, delivery, turn, key, shard] of rows) {
    if (shard !== null) rated.push({ shard, key })
    if (queueId === null) continue
    ready.push({ queueId, priority, delivery, turn: Number(turn) })
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  // Of which as many were woken as may be at once there may be more.
  const again = keys.filter(({ key }) => counts.get(key) === MOST_AT_ONCE).map((name) => ({ name, at: at.now }))
  return { ...NOTHING, ready, again, rated }
}
