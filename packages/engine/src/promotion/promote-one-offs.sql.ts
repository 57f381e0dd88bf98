import { CAUSE } from '../job/states.ts'
import { insertRuns } from '../ready/insert-runs.sql.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { CLOCK } from '../store/database-clock.ts'
import { statement } from '../store/statement.ts'
import { timerKey } from '../timers/timer.ts'
import { type LeaseTerms, limitedAmong, queuesOfLeased } from './lease-terms.ts'
import { idsOf, type Promoted, type RecurringPromotion } from './promote-recurring.sql.ts'

/** A one-off has no next time: its timer goes and its run comes, in one statement. Leased ones come with their spec. */
const PROMOTE = statement(
  'promote_one_offs',
  `with ${CLOCK}, u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::int[]) as version, unnest($4::bigint[]) as turn,
       unnest($5::boolean[]) as leased
   ), held as (
     select t.ctid, u.turn, u.leased and not t.is_limited as leased
     from u cross join lateral (
       select t.ctid, t.queue_id = any(${limitedAmong('$9')}) as is_limited from belfry.timers t
       where t.shard = u.shard and t.job_id = u.job_id and t.version = u.version
       limit 1 for update skip locked) t
   ), gone as (
     delete from belfry.timers t using held h where t.ctid = h.ctid
     returning t.nominal_at, t.due_at, t.shard, t.job_id, t.version, t.tenant_id, t.queue_id, t.job_version, t.timeout_ms, t.priority, t.delivery, h.turn, h.leased,
       t.limit_key, t.has_dependents
   ), born as (
     ${insertRuns('gone', {
       ...{ state: 'b.leased::int', attempt: 'b.leased::int', lease: { leasedAt: '$6', leaseMs: '$7', holder: '$8' } },
       ...{ cause: CAUSE.create, oneOff: true },
     })}
     on conflict do nothing
     returning job_id
   )
   select g.job_id, g.version, g.nominal_at, s.version, s.definition, ${limitedAmong('$9')}::text
   from gone g left join lateral (
     select s.version, s.definition from belfry.specs s where s.shard = g.shard and s.job_id = g.job_id limit 1) s on g.leased
   where (g.job_id in (select b.job_id from born b)) is true`,
)

export type OneOffPromotion = Omit<RecurringPromotion, 'nextNominalAt' | 'nextDueAt' | 'wanted'>

const NONE: ReadonlySet<string> = new Set()

type Row = [
  jobId: string,
  timerVersion: number,
  nominalAt: Instant,
  version: number | null,
  definition: string | null,
  limitedQueueIds: string,
]

/** Answers the runs that were born, with their definition where they were born leased. Items are unique and sorted. */
export async function promoteOneOffs(
  db: Queryable,
  items: readonly OneOffPromotion[],
  lease: LeaseTerms,
): Promise<Promoted> {
  const rows = await db.query<Row>(PROMOTE, [
    items.map((item) => item.shard),
    items.map((item) => item.jobId),
    items.map((item) => item.version),
    items.map((item) => item.turn),
    items.map((item) => item.leased),
    lease.now,
    lease.leaseMs,
    lease.holder,
    queuesOfLeased(items),
  ])
  const born = new Set<string>()
  const definitions = new Map<string, { version: number; json: string }>()
  for (const [jobId, timerVersion, nominalAt, version, json] of rows) {
    born.add(timerKey({ jobId, version: timerVersion, nominalAt }))
    if (version !== null && json !== null) definitions.set(jobId, { version, json })
  }
  const limitedQueueIds = new Set([...idsOf(rows[0]?.[5] ?? '{}')].map(Number))
  return { born, overlapped: NONE, limitedQueueIds, definitions }
}
