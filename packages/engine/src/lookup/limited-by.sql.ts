import { runIdOf, shardOfJob } from '../job/ids.ts'
import { LIMIT_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { rateInWords } from './in-words.ts'
import type { LimitedBy } from './run-view.ts'

const MAX_HOLDERS = 5

/** Of runs that wait for a slot of their key or for its rate: the limit, and who has it, the longest at work first. */
const LIMITED = statement(
  'limited_by',
  `select r.nominal_at, nullif(l.name, ''), l.max_running, l.rate_count, l.rate_period_ms, h.run
   from belfry.runs r
   left join lateral (
     select l.name, l.max_running, l.rate_count, l.rate_period_ms from belfry.limits l
     where l.shard = r.shard and l.kind = ${LIMIT_KIND.key} and l.key = r.limit_key limit 1) l on true
   left join lateral (
     select h.job_id || ' ' || extract(epoch from h.nominal_at) * 1000 as run
     from belfry.runs h
     where h.shard = r.shard and h.limit_key = r.limit_key and h.state = ${RUN_STATE.leased} order by h.leased_at limit ${MAX_HOLDERS}) h on true
   where r.shard = $1 and r.job_id = $2 and r.state = ${RUN_STATE.limited} and ($3::float8 is null or r.nominal_at = to_timestamp($3::float8 / 1000))
   limit 1000`,
)

type Row = [Instant, string | null, number | null, number | null, string | null, string | null]

/** By nominal time, those runs of the job that wait so; or that one. */
export async function readLimitedBy(
  db: Queryable,
  jobId: string,
  nominalAt: Instant | null = null,
): Promise<Map<Instant, LimitedBy>> {
  const found = new Map<Instant, LimitedBy>()
  for (const [at, key, limit, count, periodMs, holder] of await db.query<Row>(LIMITED, [
    shardOfJob(jobId),
    jobId,
    nominalAt,
  ])) {
    const rate = count === null || periodMs === null ? null : { limit: count, periodMs: Number(periodMs) }
    const one = found.get(at) ?? { key, limit, rate, heldBy: [] }
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
