import { gateKeyOf } from '../job/gate-key.ts'
import type { Instant } from '../runtime/clock.ts'
import { PAUSE_KIND, type PauseMark } from '../shards/paused.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { bringForward } from './bring-forward.sql.ts'

const FORGET = statement(
  'forget_pauses',
  `delete from belfry.pauses p where p.ctid = any (array(
     select p.ctid from unnest($1::uuid[], $2::float8[]) as u (id, ended_at) cross join lateral (
       select p.ctid from belfry.pauses p where p.id = u.id and p.ended_at = to_timestamp(u.ended_at / 1000) for update skip locked) p))`,
)

/** One behind the other, a thousand a second; what is claimed of them is for their pools to say. */
const MAX_RECALLED = 5_000
/** What is due within this comes soon anyway, or has been called back already: each round takes others. */
const SOON_MS = 10_000
/** So long another node may not know of the end, and send runs away. */
const SETTLED_MS = 5_000

/**
 * Calls back runs that pauses sent away, which have ended; answers their new times. Any node does so that hears of it, as long as the rows
 * of the pauses are there: a crash in between costs a second.
 */
export async function recallPaused(
  db: Queryable,
  pauses: readonly PauseMark[],
  now: Instant,
): Promise<{ shard: number; dueAt: Instant }[]> {
  // Runs of a paused key wait for its slots.
  const gates = pauses.filter(({ kind }) => kind !== PAUSE_KIND.key)
  const gateKeys = gates.map(({ tenantId, name }) => gateKeyOf('pause', tenantId, name))
  const back = { dueAfter: now + SOON_MS, from: now, spacingMs: 1, limit: MAX_RECALLED }
  const recalled = await bringForward(db, gateKeys, back)
  const settled = pauses.filter(({ endedAt }) => endedAt !== null && now - endedAt >= SETTLED_MS)
  if (recalled.length < MAX_RECALLED && settled.length > 0)
    await db.execute(FORGET, [settled.map(({ id }) => id), settled.map(({ endedAt }) => endedAt)])
  return recalled
}
