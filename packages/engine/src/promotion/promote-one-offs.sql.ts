import { CAUSE } from '../job/states.ts'
import { packRuns } from '../leases/pack-runs.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { timerKey } from '../timers/timer.ts'
import { type LeaseTerms, leasedColumns, limitedAmong, queuesOfLeased } from './lease-terms.ts'
import { idsOf, type Promoted } from './promote-recurring.sql.ts'

/**
 * A one-off has no next time: its timer goes and its run comes, in one statement. Leased ones come with their spec; many of a
 * tenant and queue stand in a receipt.
 */
const PROMOTE = statement(
  'promote_one_offs',
  `with u as (
     select unnest($1::smallint[]) as shard, unnest($2::uuid[]) as job_id, unnest($3::int[]) as version, unnest($4::bigint[]) as turn,
       unnest($5::boolean[]) as leased, unnest($9::boolean[]) as packs
   ), held as (
     select t.ctid, u.turn, u.leased and not t.is_limited as leased, u.packs and not t.is_limited and not t.has_dependents as packs
     from u cross join lateral (
       select t.ctid, t.has_dependents, t.queue_id = any(${limitedAmong('$10')}) as is_limited from belfry.timers t
       where /*shards t*/ t.shard = u.shard and t.job_id = u.job_id and t.version = u.version
       limit 1 for update skip locked) t
   ), gone as (
     delete from belfry.timers t using held h where t.ctid = h.ctid
     returning t.nominal_at, t.due_at, t.shard, t.job_id, t.version, t.tenant_id, t.queue_id, t.job_version, t.timeout_ms, t.priority, t.delivery, h.turn, h.leased,
       h.packs, t.limit_key, t.has_dependents
   ), packed as (
     select g.shard, g.job_id, g.nominal_at, g.due_at, g.tenant_id, g.queue_id, g.job_version, g.timeout_ms, g.priority, ${CAUSE.create}::smallint as cause
     from gone g where g.packs
   ), receipt as (
     ${packRuns('packed', { holder: '$8', now: '$6', leaseUntil: '$7' }, 'one-offs')}
   ), born as (
     insert into belfry.runs (nominal_at, due_at, turn, holder, leased_at, lease_until, deadline, job_id, tenant_id, queue_id, job_version,
       attempt, failures, timeout_ms, shard, state, priority, cause, delivery, one_off, cancel_requested, has_dependents, limit_key)
     select m.nominal_at, m.due_at, m.turn, ${leasedColumns({ now: '$6', leaseUntil: '$7', holder: '$8' })},
       m.job_id, m.tenant_id, m.queue_id, m.job_version, m.leased::int, 0, m.timeout_ms, m.shard, m.leased::int, m.priority, ${CAUSE.create}, m.delivery, true,
       false, m.has_dependents, m.limit_key
     from gone m where not m.packs
     on conflict do nothing
     returning job_id
   )
   select g.job_id, g.version, g.nominal_at, s.version, s.definition, g.packs, ${limitedAmong('$10')}::text
   from gone g left join lateral (
     select s.version, s.definition from belfry.specs s where s.shard = g.shard and s.job_id = g.job_id limit 1) s on g.leased
   where g.packs or (g.job_id in (select b.job_id from born b)) is true`,
)

export interface OneOffPromotion {
  shard: number
  jobId: string
  version: number
  turn: number
  /** Born leased to an executor of this node. */
  leased: boolean
  /** Born leased into the receipt of its statement. */
  packs: boolean
  queueId: number
}

const NONE: ReadonlySet<string> = new Set()

type Row = [
  jobId: string,
  timerVersion: number,
  nominalAt: Instant,
  version: number | null,
  definition: string | null,
  isPacked: boolean,
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
    lease.leaseUntil,
    lease.holder,
    items.map((item) => item.packs),
    queuesOfLeased(items),
  ])
  const born = new Set<string>()
  const packed = new Set<string>()
  const definitions = new Map<string, { version: number; json: string }>()
  for (const [jobId, timerVersion, nominalAt, version, json, isPacked] of rows) {
    born.add(timerKey({ jobId, version: timerVersion, nominalAt }))
    if (isPacked) packed.add(jobId)
    if (version !== null && json !== null) definitions.set(jobId, { version, json })
  }
  const limitedQueueIds = new Set([...idsOf(rows[0]?.[6] ?? '{}')].map(Number))
  return { born, packed, overlapped: NONE, limitedQueueIds, definitions }
}
