import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** Of the row `q`. */
export const QUEUE_COLUMNS = {
  id: column<number>('q.id'),
  kind: column<number | null>('q.kind'),
  pausedAt: column<Instant | null>('q.paused_at'),
  pauseReason: column<string | null>('q.pause_reason'),
  pausedBy: column<string | null>('q.paused_by'),
  /** Null: no limit. */
  maxDepth: column<number | null>('q.max_depth'),
  maxAgeMs: column<number | null>('q.max_age_ms::float8'),
  /** What recurring jobs are spread over that say nothing themselves. */
  jitterMs: column<number | null>('q.jitter_ms'),
}
const QUEUE = columns(QUEUE_COLUMNS)
export type QueueRow = Read<typeof QUEUE>

const LOCK = statement(
  'lock_queue',
  `select ${QUEUE.text} from belfry.queues q
   where q.tenant_id = $1 and q.name = $2 and q.deleted_at is null for update`,
)
const WRITE = statement(
  'write_queue',
  `update belfry.queues q set kind = $2, paused_at = to_timestamp($3::float8 / 1000), pause_reason = $4, deleted_at = to_timestamp($5::float8 / 1000), paused_by = $6,
     max_depth = $7, max_age_ms = $8::float8::bigint, jitter_ms = $9
   where q.id = $1`,
)
/** Whether anything still names the queue: a run in flight, or one of the newest jobs. Rarely asked, so it may walk the runs. */
const IN_USE = statement(
  'queue_in_use',
  `select exists (select from belfry.runs r where r.tenant_id = $1 and r.queue_id = $2)
     or exists (select from (select j.shard, j.id from belfry.jobs j where j.tenant_id = $1 and j.tenant_id > 0 order by j.id desc limit $3) j
       join lateral (select t.queue_id from belfry.timers t where t.shard = j.shard and t.job_id = j.id limit 1) t on t.queue_id = $2)
     or exists (select from (select s.shard, s.job_id from belfry.specs s where s.tenant_id = $1 and s.tenant_id > 0 order by s.job_id desc limit $3) s
       join lateral (select t.queue_id from belfry.timers t where t.shard = s.shard and t.job_id = s.job_id limit 1) t on t.queue_id = $2)`,
)

const COUNT_SET = statement(
  'count_set_queues',
  `select count(*)::int from (select from belfry.queues q where q.max_depth is not null or q.max_age_ms is not null or q.jitter_ms is not null limit $1) q`,
)

/** Jobs that are looked at; a queue that an older one names comes back when that job is due. */
const MAX_LOOKED_AT = 10_000

/** Null: the tenant has no such queue of its own. */
export async function lockQueue(tx: Queryable, tenantId: number, name: string): Promise<QueueRow | null> {
  const [row] = await tx.query<RowOf<QueueRow>>(LOCK, [tenantId, name])
  return row ? QUEUE.read(row) : null
}

export async function writeQueue(tx: Queryable, queue: QueueRow, deletedAt: Instant | null = null): Promise<void> {
  const { id, kind, pausedAt, pauseReason, pausedBy, maxDepth, maxAgeMs, jitterMs } = queue
  await tx.execute(WRITE, [id, kind, pausedAt, pauseReason, deletedAt, pausedBy, maxDepth, maxAgeMs, jitterMs])
}

/** Queues of all tenants that have settings, which every node is told every second. */
export const countSetQueues = async (tx: Queryable, limit: number): Promise<number> =>
  (await tx.query<[number]>(COUNT_SET, [limit]))[0]?.[0] ?? 0

export async function isQueueInUse(tx: Queryable, tenantId: number, queueId: number): Promise<boolean> {
  return (await tx.query<[boolean]>(IN_USE, [tenantId, queueId, MAX_LOOKED_AT]))[0]?.[0] === true
}
