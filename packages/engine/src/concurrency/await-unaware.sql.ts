import type { Clock } from '../runtime/clock.ts'
import { pause } from '../runtime/pause.ts'
import type { Database } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type LimitRef, limitRow, openLimit } from './shared-limits.sql.ts'

/** What is under way on this schema, and what is just being committed. */
const UNDER_WAY = statement(
  'statements_under_way',
  `select a.pid, (extract(epoch from a.xact_start) * 1000000)::bigint from pg_stat_activity a
   where a.datname = current_database() and a.xact_start is not null and a.pid <> pg_backend_pid() and a.application_name = 'belfry'
     and (position($1 in a.query) > 0 or a.query ilike 'commit%')`,
)
const STILL = statement(
  'statements_still_under_way',
  `select a.pid from unnest($1::int[], $2::bigint[]) as u (pid, began) join pg_stat_activity a
     on a.pid = u.pid and (extract(epoch from a.xact_start) * 1000000)::bigint = u.began`,
)

/** Longer than any statement takes that leases. A limit counts from then on in any case. */
export const UNAWARE_MS = 2_000
const LOOK_AGAIN_MS = 5

/**
 * A limit has been made and committed. Statements that began before do not see it, and what they lease is not counted before
 * they commit: until they are gone nothing is leased by the new limit, or there would be more than it allows. If this node
 * dies meanwhile, the limit counts by itself when the time that it was written with is over.
 */
export async function openWhenKnown(db: Database, clock: Clock, ref: LimitRef): Promise<void> {
  const unaware = await db.query<[number, string]>(UNDER_WAY, [db.schema])
  const values = [unaware.map(([pid]) => pid), unaware.map(([, began]) => began)]
  for (let waitedMs = 0; unaware.length > 0 && waitedMs < UNAWARE_MS; waitedMs += LOOK_AGAIN_MS) {
    if ((await db.query(STILL, values)).length === 0) break
    await pause(LOOK_AGAIN_MS)
  }
  await db.callers.transactionOn([limitRow(ref)], (tx) => openLimit(tx, ref, clock.now()))
}
