import { WORD } from '../input/read-fields.ts'
import { KEYED, OUTCOME, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { MAX_SCANNED } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { type Load, workersWanted } from './workers-wanted.ts'

/** Who has more than this of anything is short of workers whatever the exact number is. */
const MAX_COUNTED = 100_001
/** Attempts that ended longer ago say nothing about how long they take now. */
const LATELY_MS = 300_000
/** Over which time arrivals are counted, if there are not too many for it. */
const ARRIVALS_MS = 60_000

/**
 * What waits stands in the index of ready runs, what is performed in the one of leases. The latest attempts of
 * the tenant, a bounded number, tell the rest: how long those of the queue took, and how many of them became due within the
 * time that these attempts cover. With what became due in that time and has not ended, that is what arrived.
 */
const SCALE = statement(
  'read_scale',
  `with q as materialized (
     select q.id, q.paused_at is not null as is_paused from belfry.queues q
     where (q.tenant_id = $1 or q.shared) and q.name = $2 and q.deleted_at is null order by q.shared limit 1
   ), ready as materialized (
     select r.due_at from q cross join lateral (
       select r.due_at from belfry.runs r where r.queue_id = q.id and r.state = ${RUN_STATE.ready} and r.delivery < ${KEYED} and r.tenant_id = $1
       order by r.queue_id, r.priority, r.turn limit ${MAX_COUNTED}) r
   ), leased as materialized (
     select r.due_at from belfry.runs r where r.state = ${RUN_STATE.leased} and r.tenant_id = $1 and r.queue_id = (select q.id from q)
     order by r.lease_until limit ${MAX_COUNTED}
   ), latest as materialized (
     select a.queue_id, a.outcome, a.due_at, a.leased_at, a.started_at, a.finished_at from belfry.attempts a
     where a.tenant_id = $1 and a.tenant_id > 0 and a.finished_at > to_timestamp($3::float8 / 1000) and a.finished_at <= to_timestamp($4::float8 / 1000)
       and exists (select from q)
     order by a.finished_at desc limit ${MAX_SCANNED}
   ), reach as materialized (
     select greatest(to_timestamp(($4::float8 - ${ARRIVALS_MS}) / 1000), case when count(*) = ${MAX_SCANNED} then min(l.finished_at) end) as since from latest l
   )
   select q.is_paused, (select count(*)::int from ready), (select count(*)::int from leased),
     (select extract(epoch from avg(l.finished_at - coalesce(l.started_at, l.leased_at)))::float8 * 1000 from latest l
      where l.queue_id = q.id and l.leased_at is not null and l.outcome in (${OUTCOME.succeeded}, ${OUTCOME.failed}, ${OUTCOME.canceled}, ${OUTCOME.snoozed})),
     (select count(*)::int from latest l where l.queue_id = q.id and l.due_at > reach.since)
       + (select count(*)::int from ready r where r.due_at > reach.since) + (select count(*)::int from leased r where r.due_at > reach.since),
     reach.since
   from q cross join reach`,
)

export interface ScaleRequest {
  tenantId: number
  queue: string
  now: Instant
  targetLagMs: number
  perWorker: number
}

export interface ScaleView extends Load {
  queue: string
  /** How many workers there should be. */
  workers: number
  /** How many runs they should perform at once, together. */
  slots: number
}

type Row = [
  isPaused: boolean,
  backlog: number,
  running: number,
  serviceMs: number | null,
  arrived: number,
  since: Instant,
]

/** Null: there is no such queue. A paused one needs workers only for what is being performed. */
export async function readScale(db: Queryable, request: ScaleRequest): Promise<ScaleView | null> {
  const { tenantId, queue, now, targetLagMs, perWorker } = request
  if (!WORD.test(queue)) return null
  const [row] = await db.query<Row>(SCALE, [tenantId, queue, now - LATELY_MS, now])
  if (row === undefined) return null
  const [isPaused, backlog, running, service, arrived, since] = row
  const serviceMs = service === null ? null : Math.max(0, Math.round(service))
  // A batch may end within one millisecond; over so short a time there is no rate.
  const arrivalsPerSecond = rounded(arrived / (Math.max(1_000, now - since) / 1_000))
  const load = { backlog, running, serviceMs, arrivalsPerSecond, targetLagMs, perWorker }
  const wanted = workersWanted(isPaused ? { ...load, backlog: 0, arrivalsPerSecond: 0 } : load)
  return { queue, ...wanted, ...load }
}

const rounded = (rate: number): number => Math.round(rate * 1_000) / 1_000
