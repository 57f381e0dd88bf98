import { type LimitsView, limitsView, NO_LIMITS } from '../concurrency/shared-limit-fields.ts'
import { readQueueLimits } from '../concurrency/shared-limits.sql.ts'
import { WORD } from '../input/read-fields.ts'
import { DEFAULT_TENANT } from '../job/definition.ts'
import { nameOf, QUEUE_KIND, RUN_STATE } from '../job/states.ts'
import type { Instant } from '../runtime/clock.ts'
import { QUEUE_COLUMNS } from '../shards/queue-rows.sql.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { limitOf, type Page, type PageRequest, pageOf, readCursor } from '../store/page.ts'
import { statement } from '../store/statement.ts'
import { dateOf } from './run-view.ts'
import type { RunCounts } from './stats.sql.ts'

const QUEUE = columns({
  name: column<string>('q.name'),
  shared: column<boolean>('q.shared'),
  createdAt: column<Instant>('q.created_at'),
  ...QUEUE_COLUMNS,
})
type Queue = Read<typeof QUEUE>

/** A tenant's own and the shared ones; of two that have the same name, the tenant's own. */
const LIST = statement(
  'list_queues',
  `select distinct on (q.name) ${QUEUE.text} from belfry.queues q
   where (q.tenant_id = $1 or q.shared) and q.name > $2 and ($3::text is null or q.name = $3) and q.deleted_at is null
   order by q.name, q.shared limit $4`,
)
/** So many runs at most, by `runs_by_tenant`, which the planner takes only for a literal. The tenant `default` is not in it. */
const depthText = (condition: string): string =>
  `with scanned as materialized (
     select r.queue_id, r.state, r.due_at from belfry.runs r where r.tenant_id = $1 ${condition} limit $2
   )
   select s.queue_id, s.state, count(*)::int, min(s.due_at), (select count(*)::int from scanned) from scanned s group by s.queue_id, s.state`
const DEPTH = statement(
  'queue_depths',
  depthText(`and r.tenant_id <> ${DEFAULT_TENANT} order by r.tenant_id, r.job_id, r.nominal_at`),
)
const DEPTH_OF_DEFAULT = statement('queue_depths_of_default', depthText('order by r.shard, r.job_id, r.nominal_at'))

export type QueueKindName = keyof typeof QUEUE_KIND

export interface QueueDepth extends RunCounts {
  /** False: there are more than were counted. */
  isComplete: boolean
}

export interface QueueView extends LimitsView {
  name: string
  /** Null until its first use decides. */
  kind: QueueKindName | null
  /** Used by all tenants; counts are of one's own runs. */
  shared: boolean
  paused: boolean
  pausedAt: Date | null
  pauseReason: string | null
  /** Who paused it; null: it is not, or that was not written down then. */
  pausedBy: string | null
  /** Creates are refused while more runs wait to be started, or the next has waited for longer; null: never. */
  maxDepth: number | null
  maxAgeMs: number | null
  /** For jobs that say nothing themselves. */
  defaults: { jitterMs: number | null }
  createdAt: Date
  depth: QueueDepth
  /** How long the oldest ready run has been due. */
  oldestReadyMs: number | null
}

/** Runs that are counted: of all queues at once, and for one queue. */
const COUNTED_FOR_LIST = 10_000
const COUNTED_FOR_ONE = 100_000

interface Readers {
  /** As the tenant reads. */
  db: Queryable
  /** For what no tenant may read by itself: limits of shared queues. */
  engineDb: Queryable
}

export async function listQueues(
  readers: Readers,
  { tenantId, now, ...request }: PageRequest & { tenantId: number; now: Instant },
): Promise<Page<QueueView>> {
  const limit = limitOf(request)
  const [after] = readCursor(request, [WORD]) ?? ['']
  const queues = await readQueues(readers.db, [tenantId, after, null, limit + 1])
  const items = await withDepth(readers, queues, { tenantId, now, counted: COUNTED_FOR_LIST })
  return pageOf(items, limit, ({ name }) => [name])
}

/** Null: there is no such queue. */
export async function getQueue(
  readers: Readers,
  { tenantId, now }: { tenantId: number; now: Instant },
  name: string,
): Promise<QueueView | null> {
  const queue = await findQueue(readers.db, tenantId, name)
  return queue && ((await withDepth(readers, [queue], { tenantId, now, counted: COUNTED_FOR_ONE }))[0] ?? null)
}

/** Null: there is no such queue. */
export async function findQueue(db: Queryable, tenantId: number, name: string): Promise<Queue | null> {
  return WORD.test(name) ? ((await readQueues(db, [tenantId, '', name, 1]))[0] ?? null) : null
}

const readQueues = async (db: Queryable, values: readonly unknown[]): Promise<Queue[]> =>
  (await db.query<RowOf<Queue>>(LIST, values)).map((row) => QUEUE.read(row))

async function withDepth(
  { db, engineDb }: Readers,
  queues: readonly Queue[],
  { tenantId, now, counted }: { tenantId: number; now: Instant; counted: number },
): Promise<QueueView[]> {
  if (queues.length === 0) return []
  const statement = tenantId === DEFAULT_TENANT ? DEPTH_OF_DEFAULT : DEPTH
  const [rows, limits] = await Promise.all([
    db.query<[number, number, number, Instant, number]>(statement, [tenantId, counted]),
    readQueueLimits(
      engineDb,
      queues.map(({ id }) => id),
    ),
  ])
  const isComplete = (rows[0]?.[4] ?? 0) < counted
  return queues.map(({ id, kind, jitterMs, createdAt, pausedAt, ...queue }) => {
    const own = rows.filter(([queueId]) => queueId === id)
    const countOf = (...states: number[]) =>
      own.reduce((sum, [, state, count]) => (states.includes(state) ? sum + count : sum), 0)
    const oldest = own.find(([, state]) => state === RUN_STATE.ready)?.[3]
    return {
      ...queue,
      kind: kind === null ? null : (nameOf(QUEUE_KIND, kind) ?? null),
      paused: pausedAt !== null,
      pausedAt: dateOf(pausedAt),
      defaults: { jitterMs },
      ...limitsView(limits.get(id) ?? NO_LIMITS),
      createdAt: new Date(createdAt),
      depth: {
        ready: countOf(RUN_STATE.ready),
        running: countOf(RUN_STATE.leased),
        waiting: countOf(RUN_STATE.waiting, RUN_STATE.blocked, RUN_STATE.limited, RUN_STATE.dependent),
        isComplete,
      },
      oldestReadyMs: oldest === undefined ? null : Math.max(0, now - oldest),
    }
  })
}
