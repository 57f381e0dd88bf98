import { gcra } from '../concurrency/gcra.ts'
import { limitsOf } from '../concurrency/shared-limits.sql.ts'
import { runIdOf, shardOfJob } from '../job/ids.ts'
import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { rateInWords } from './in-words.ts'
import type { LimitedBy } from './run-view.ts'

const MAX_HOLDERS = 5

/**
 * Of runs that wait for a slot of their key or for its rate: the limit, and who has it, the longest at work first. A ready run has
 * a key too, and is only put aside when it is claimed: of those the caller looks whether the key would let it start.
 */
const LIMITED = statement(
  'limited_by',
  `select r.nominal_at, r.state = ${RUN_STATE.limited}, nullif(l.name, ''), l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at,
     (select count(*)::int from (select from belfry.runs h
       where h.shard = r.shard and h.limit_key = r.limit_key and h.state = ${RUN_STATE.leased} limit coalesce(l.max_running, 0)) h),
     h.run
   from unnest($3::float8[]) as u (nominal_at)
   cross join lateral (
     select r.nominal_at, r.state, r.shard, r.limit_key from belfry.runs r
     where r.shard = $1 and r.job_id = $2 and r.nominal_at = to_timestamp(u.nominal_at / 1000) and r.limit_key is not null
       and r.state in (${RUN_STATE.limited}, ${RUN_STATE.ready}) limit 1) r
   left join lateral (
     select l.name, l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst, l.rate_at from belfry.limits l
     where l.shard = r.shard and l.kind = ${LIMIT_KIND.key} and l.key = r.limit_key limit 1) l on true
   left join lateral (
     select h.job_id || ' ' || extract(epoch from h.nominal_at) * 1000 as run
     from belfry.runs h
     where h.shard = r.shard and h.limit_key = r.limit_key and h.state = ${RUN_STATE.leased} order by h.leased_at limit ${MAX_HOLDERS}) h on true`,
)

type Row = [
  ...[nominalAt: Instant, isLimited: boolean, key: string | null, maxRunning: number | null],
  ...[rateCount: number | null, ratePeriodMs: string | null, rateBurst: number | null, rateAt: string | null],
  ...[leased: number, holder: string | null],
]

/** By nominal time, those of these runs of the job that wait so, or would if they were claimed now. */
export async function readLimitedBy(
  db: Queryable,
  jobId: string,
  { nominalAts, now }: { nominalAts: readonly Instant[]; now: Instant },
): Promise<Map<Instant, LimitedBy>> {
  const found = new Map<Instant, LimitedBy>()
  for (const row of await db.query<Row>(LIMITED, [shardOfJob(jobId), jobId, nominalAts])) {
    const [at, isLimited, key, maxRunning, count, periodMs, burst, rateAt, leased, holder] = row
    const { rate } = limitsOf([maxRunning, count, periodMs, burst])
    const isTaken = maxRunning !== null && leased >= maxRunning
    const isUsedUp = rate !== null && gcra(Number(rateAt), rate, now, 1).allowed === 0
    if (!isLimited && !isTaken && !isUsedUp) continue
    // Of a ready run only what is in its way.
    const limit = isLimited || isTaken ? maxRunning : null
    const one = found.get(at) ?? {
      key,
      limit,
      rate: rate && { limit: rate.limit, periodMs: rate.periodMs },
      heldBy: [],
    }
    const [id, heldAt] = holder?.split(' ') ?? []
    if (id !== undefined) one.heldBy.push(runIdOf(id, Number(heldAt)))
    found.set(at, one)
  }
  return found
}

/** In words: what it waits for, and who has it. */
export function limitInWords({ key, limit, rate, heldBy }: LimitedBy): string {
  const whose = key === null ? 'the job' : `the key "${key}"`
  if (limit === null) return `the rate of ${whose}${rate === null ? '' : `, ${rateInWords(rate)}`}`
  const slots = `a slot of ${whose}, which has ${limit}`
  const others = limit > heldBy.length && heldBy.length === MAX_HOLDERS ? ' and others' : ''
  return heldBy.length === 0 ? slots : `${slots}; held by ${heldBy.join(', ')}${others}`
}
