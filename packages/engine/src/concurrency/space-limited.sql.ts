import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Database, Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { Rate } from './gcra.ts'
import { type KeyRef, refArrays } from './key-ref.ts'
import { limitsOf } from './shared-limits.sql.ts'
import { timesInLine } from './times-in-line.ts'

const LOCK = statement(
  'lock_rates_of_keys',
  `select k.n::int, l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.used_at, l.leased::int
   from unnest($1::smallint[], $2::bigint[]) with ordinality as k (shard, key, n)
   cross join lateral (
     select l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at, l.used_at, (
       select count(*) from (
         select from belfry.runs r where r.shard = k.shard and r.limit_key = k.key and r.state = ${RUN_STATE.leased}
         limit coalesce(l.max_running, 0)) c) as leased
     from belfry.limits l
     where l.shard = k.shard and l.kind = ${LIMIT_KIND.key} and l.key = k.key and l.rate_count is not null and l.paused_at is null
     limit 1 for update skip locked) l`,
)
/** The oldest that wait, with what each counts as. */
const OLDEST = statement(
  'oldest_limited_of_key',
  `select r.ctid, coalesce(j.definition, s.definition) #>> '{rateLimit,cost}'
   from (
     select r.ctid, r.shard, r.job_id, r.nominal_at from belfry.runs r
     where r.shard = $1 and r.limit_key = $2 and r.state = ${RUN_STATE.limited}
       and r.queue_id <> all (array(select q.id from belfry.queues q where q.paused_at is not null))
     order by r.nominal_at limit $3 for update skip locked) r
   left join lateral (select j.definition from belfry.jobs j where j.shard = r.shard and j.id = r.job_id limit 1) j on true
   left join lateral (select s.definition from belfry.specs s where s.shard = r.shard and s.job_id = r.job_id limit 1) s on true
   order by r.nominal_at`,
)
const SPACE = statement(
  'space_limited_runs',
  `with spaced as (
     update belfry.runs r set state = ${RUN_STATE.waiting}, due_at = to_timestamp(u.due_at / 1000)
     from unnest($3::tid[], $4::float8[]) as u (ctid, due_at) where r.ctid = u.ctid
   )
   update belfry.limits l set used_at = to_timestamp($5::float8 / 1000) where l.shard = $1 and l.kind = ${LIMIT_KIND.key} and l.key = $2`,
)

/** How far ahead runs are given times: a rate that is changed counts for all that wait behind them. */
export const AHEAD_MS = 1_000
const MAX_AT_ONCE = 1_000

export interface Spaced {
  /** Runs that wait for their time now, by the first of each key. */
  waiting: { shard: number; dueAt: Instant }[]
  /** When to look at a key again: others of it wait. */
  again: { name: KeyRef; at: Instant }[]
  /** Keys that another transaction holds, or that have no rate any more. */
  held: KeyRef[]
}

/**
 * Runs that are over the rate of their key are given the times at which it allows them, one after the other, the oldest first, as
 * far as those lie in the next second. Each key is held meanwhile, so that two transactions that do this give no time twice. Whether a run
 * then starts is decided when it is claimed: a time is a place in line, not a permission.
 */
export async function spaceLimited(db: Database, keys: readonly KeyRef[], now: Instant): Promise<Spaced> {
  return db.transaction(async (tx) => {
    type Row = [number, number | null, number, string, number, string, Instant, number]
    const rows = await tx.query<Row>(LOCK, refArrays(keys))
    const held = new Set<KeyRef>()
    const spaced: Spaced = { waiting: [], again: [], held: [] }
    for (const [n, maxRunning, count, periodMs, burst, rateAt, usedAt, leased] of rows) {
      const ref = keys[n - 1] as KeyRef
      held.add(ref)
      const { rate } = limitsOf([maxRunning, count, periodMs, burst])
      const free = maxRunning === null ? MAX_AT_ONCE : Math.min(MAX_AT_ONCE, maxRunning - leased)
      if (free <= 0 || rate === null) continue
      await spaceKey(tx, ref, { rate, rateAt: Number(rateAt), usedAt, free, now }, spaced)
    }
    return { ...spaced, held: keys.filter((ref) => !held.has(ref)) }
  })
}

async function spaceKey(
  tx: Queryable,
  ref: KeyRef,
  line: { rate: Rate; rateAt: number; usedAt: Instant; free: number; now: Instant },
  spaced: Spaced,
): Promise<void> {
  const { shard, key } = ref
  const { rate, free, now } = line
  const runs = await tx.query<[string, string | null]>(OLDEST, [shard, key, free])
  const costs = runs.map(([, cost]) => Math.min(cost === null ? 1 : Number(cost), rate.burst))
  const times = timesInLine(line, costs)
  const near = times.filter((at) => at <= now + AHEAD_MS)
  const [first] = near
  const last = near.at(-1)
  if (first !== undefined && last !== undefined) {
    const ctids = runs.slice(0, near.length).map(([ctid]) => ctid)
    await tx.execute(SPACE, [shard, key, ctids, near.map(Math.ceil), Math.ceil(last)])
    spaced.waiting.push({ shard, dueAt: Math.ceil(first) })
  }
  const next = times[near.length] ?? (runs.length === free ? last : undefined)
  if (next !== undefined) spaced.again.push({ name: ref, at: Math.max(now + 1, Math.floor(next) - AHEAD_MS / 2) })
}
