import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const NEXT = statement(
  'next_due_instant',
  `select least((select min(t.due_at) from belfry.timers t where t.due_at > to_timestamp($1::float8 / 1000)),
     (select min(r.due_at) from belfry.runs r where r.state = ${RUN_STATE.waiting} and r.due_at > to_timestamp($1::float8 / 1000)),
     (select min(r.lease_until) from belfry.runs r where r.state = ${RUN_STATE.leased} and r.lease_until > to_timestamp($1::float8 / 1000)),
     (select min(d.at) from belfry.limits l cross join lateral (
        select to_timestamp((l.rate_at + (1 - l.rate_burst) * (l.rate_period_ms * 1000.0 / l.rate_count)) / 1000000) as at) d
      where l.kind = ${LIMIT_KIND.key} and d.at > to_timestamp($1::float8 / 1000)
        and exists (select from belfry.runs r where r.shard = l.shard and r.limit_key = l.key and r.state = ${RUN_STATE.limited} offset 0)))`,
)

/** The first instant after `now` at which a timer, a backoff or a lease is over, or a rate allows one more; infinite if there is none. */
export async function nextDueInstant(db: Queryable, now: Instant): Promise<Instant> {
  const [row] = await db.query<[Instant | null]>(NEXT, [now])
  return row?.[0] ?? Number.POSITIVE_INFINITY
}
