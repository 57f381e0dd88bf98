import { CAUSE, OVERLAP, SKIP_REASON } from '../job/states.ts'
import { insertRuns } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { timerKeyInSql } from '../timers/timer.ts'
import { type LeaseTerms, limitedAmong, queuesOfLeased } from './lease-terms.ts'

const ONLY_BACKFILL = `not exists (
         select from belfry.runs r where r.shard = t.shard and r.job_id = t.job_id and r.cause <> ${CAUSE.backfill} offset 0)`
const TAKES_THOUGHT = `h.is_alive and (h.overlap > ${OVERLAP.skip} or h.overlap = ${OVERLAP.skip} and ${ONLY_BACKFILL})`

/**
 * The compare-and-set on `timers.version` feeds the insert into `runs`, in one statement: the second of two promoters
 * changes nothing and inserts nothing. What it meets decides `overlap: skip` exactly, because every inserter of runs raises
 * the version: a run that this statement's snapshot does not see has made the compare-and-set fail. A timer that changed under the lock is
 * not moved (its ctid is new to the snapshot) and not returned: the promoter looks at it again.
 *
 * What meets a live run under another policy than skip and allow is not moved either, nor what met a backfill alone:
 * that is decided under the timer's lock.
 */
const PROMOTE = statement(
  'promote_recurring',
  `with ${CLOCK}, u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::int[]) as version, unnest($4::bigint[]) as next_nominal,
       unnest($5::bigint[]) as next_due, unnest($6::bigint[]) as turn, unnest($7::boolean[]) as leased, unnest($8::boolean[]) as wanted
   ), held as (
     select t.ctid, u.next_nominal, u.next_due, u.turn, u.leased and not t.is_limited as leased, u.wanted and not t.is_limited as wanted,
       t.nominal_at, t.due_at, t.overlap,
       exists (select from belfry.runs r where r.shard = u.shard and r.job_id = u.job_id offset 0) as is_alive
     from u cross join lateral (
       select t.ctid, t.nominal_at, t.due_at, t.overlap, t.queue_id = any(${limitedAmong('$12')}) as is_limited
       from belfry.timers t
       where t.shard = u.shard and t.job_id = u.job_id and t.version = u.version
       limit 1 for update skip locked) t
     offset 0
   ), moved as (
     update belfry.timers t set due_at = to_timestamp(h.next_due / 1000::float8), nominal_at = to_timestamp(h.next_nominal / 1000::float8),
       decided_until = h.nominal_at, version = t.version + 1,
       remaining_runs = t.remaining_runs - (not (h.overlap = ${OVERLAP.skip} and h.is_alive))::int
     from held h where t.ctid = h.ctid and not (${TAKES_THOUGHT})
     returning t.shard, t.job_id, t.version - 1 as version, t.tenant_id, t.queue_id, t.job_version, t.timeout_ms, t.priority, t.delivery, t.limit_key,
       t.has_dependents, h.nominal_at, h.due_at, h.turn, h.leased, h.wanted, h.overlap = ${OVERLAP.skip} and h.is_alive as overlaps
   ), skipped as (
     insert into belfry.skips (from_nominal, to_nominal, decided_at, job_id, tenant_id, job_version, count, shard, reason)
     select m.nominal_at, m.nominal_at + interval '1 ms', to_timestamp($9::float8 / 1000), m.job_id, m.tenant_id, m.job_version, 1, m.shard, ${SKIP_REASON.overlap}
     from moved m where m.overlaps
   ), born as (
     ${insertRuns('moved', {
       ...{
         state: 'b.leased::int',
         attempt: 'b.leased::int',
         lease: { leasedAt: '$9', leaseMs: '$10', holder: '$11' },
       },
       ...{ cause: CAUSE.schedule, oneOff: false },
     })} where not b.overlaps
     on conflict do nothing
     returning job_id
   )
   select null, case when (select count(*) from born) + (select count(*) from moved m where m.overlaps) = cardinality($2::uuid[]) then null
       else array(select ${timerKeyInSql('m.job_id', 'm.version', 'm.nominal_at')} from moved m
         where (m.job_id in (select b.job_id from born b)) is true)::text end,
     array(select ${timerKeyInSql('m.job_id', 'm.version', 'm.nominal_at')} from moved m where m.overlaps)::text,
     ${limitedAmong('$12')}::text
   union all
   select m.job_id, j.version::text, j.definition::text, null
   from moved m cross join lateral (
     select j.version, j.definition from belfry.jobs j
     where j.shard = m.shard and j.id = m.job_id limit 1) j
   where m.wanted and not m.overlaps`,
)

export interface RecurringPromotion {
  shard: number
  jobId: string
  version: number
  nextNominalAt: Instant
  nextDueAt: Instant
  turn: number
  /** Born leased to an executor of this node. */
  leased: boolean
  /** Its definition is wanted: it is born leased, and this node has not read it lately. */
  wanted: boolean
  queueId: number
}

/** What a promotion really did. */
export interface Promoted {
  /** The timers (`timerKey`) whose run was born; null stands for all that did not overlap. */
  born: ReadonlySet<string> | null
  /** The timers (`timerKey`) whose run was not born: another of the job was alive, and a skip says so. */
  overlapped: ReadonlySet<string>
  /** Queues that have a limit: what was to be born leased there is ready. */
  limitedQueueIds: ReadonlySet<number>
  /** By job, the definitions that were wanted. */
  definitions: ReadonlyMap<string, { version: number; json: string }>
}

type Row = [string | null, string | null, string, string | null]

/**
 * Moves timers on and gives birth to their runs. Items are unique and sorted. The usual answer is that every item became a
 * run or a skip, so only the exceptions are named; definitions follow, one row each.
 */
export async function promoteRecurring(
  db: Queryable,
  items: readonly RecurringPromotion[],
  lease: LeaseTerms,
): Promise<Promoted> {
  const [summary, ...rows] = await db.query<Row>(PROMOTE, [
    items.map((item) => item.shard),
    items.map((item) => item.jobId),
    items.map((item) => item.version),
    items.map((item) => item.nextNominalAt),
    items.map((item) => item.nextDueAt),
    items.map((item) => item.turn),
    items.map((item) => item.leased),
    items.map((item) => item.wanted),
    lease.now,
    lease.leaseMs,
    lease.holder,
    queuesOfLeased(items),
  ])
  const [, someBorn, overlaps, limited] = summary as Row
  const definitions = new Map<string, { version: number; json: string }>()
  for (const [jobId, version, json] of rows) definitions.set(jobId as string, { version: Number(version), json })
  return {
    born: someBorn === null ? null : idsOf(someBorn),
    overlapped: idsOf(overlaps),
    limitedQueueIds: new Set([...idsOf(limited ?? '{}')].map(Number)),
    definitions,
  }
}

export const idsOf = (array: string): Set<string> => new Set(array === '{}' ? [] : array.slice(1, -1).split(','))
