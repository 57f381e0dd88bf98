import { shardOfKey } from '../job/ids.ts'
import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

/** A worker that named ever new queues would else grow its row without end. */
const MAX_QUEUES = 100
/** Says that a sighting does not tell how much is in flight: zero would be a statement. */
const UNKNOWN = -1
const PURGE_BATCH = 1_000

/**
 * Who works for a tenant. A row is made by registration or by the first call of a worker, whichever comes first, and is
 * renewed while the worker is seen. Nothing depends on it but what operators see and whether a worker shall drain: leases stand
 * for themselves.
 */
const WORKER = columns({
  id: column<string>('w.id'),
  queues: column<string>('to_json(w.queues)'),
  capacity: column<number | null>('w.capacity'),
  version: column<string | null>('w.version'),
  labels: column<string | null>('w.labels'),
  startedAt: column<Instant>('w.started_at'),
  seenAt: column<Instant>('w.seen_at'),
  inFlight: column<number>('w.in_flight'),
  isDraining: column<boolean>('w.is_draining'),
})
type Row = RowOf<Read<typeof WORKER>>
export type WorkerRow = ReturnType<typeof workerOf>

/** What is not given stays as it was. */
const PUT = statement(
  'put_worker',
  `with w as (
     insert into belfry.workers as w (started_at, seen_at, tenant_id, capacity, shard, is_draining, id, version, queues, labels)
     values (to_timestamp($4::float8 / 1000), to_timestamp($4::float8 / 1000), $2, $5, $1, coalesce($6::boolean, false), $3, $7, coalesce($8::text[], '{}'), $9)
     on conflict (shard, tenant_id, id) do update set
       seen_at = case when $10::boolean then greatest(w.seen_at, excluded.seen_at) else w.seen_at end,
       capacity = coalesce(excluded.capacity, w.capacity), version = coalesce(excluded.version, w.version), labels = coalesce(excluded.labels, w.labels),
       is_draining = coalesce($6::boolean, w.is_draining), queues = coalesce($8::text[], w.queues)
     returning w.id, w.queues, w.capacity, w.version, w.labels, w.started_at, w.seen_at, w.in_flight, w.is_draining
   )
   select ${WORKER.text} from w`,
)
/** In the order of the key, since two nodes may see the same workers at once. */
const SAW = statement(
  'saw_workers',
  `insert into belfry.workers as w (started_at, seen_at, tenant_id, in_flight, shard, id, queues)
   select to_timestamp(u.seen_at / 1000), to_timestamp(u.seen_at / 1000), u.tenant_id, u.in_flight, u.shard, u.id, string_to_array(u.queues, ',')
   from unnest($1::float8[], $2::smallint[], $3::int[], $4::text[], $5::text[], $6::int[], $7::boolean[])
     as u (seen_at, shard, tenant_id, id, queues, in_flight, is_new)
   where u.is_new or exists (select from belfry.workers w where w.shard = u.shard and w.tenant_id = u.tenant_id and w.id = u.id)
   order by u.shard, u.tenant_id, u.id
   on conflict (shard, tenant_id, id) do update set
     seen_at = greatest(w.seen_at, excluded.seen_at),
     in_flight = case when excluded.in_flight = ${UNKNOWN} then w.in_flight else excluded.in_flight end,
     queues = case when excluded.queues <@ w.queues or cardinality(w.queues) >= ${MAX_QUEUES} then w.queues else w.queues || excluded.queues end
   returning w.tenant_id, w.id, w.is_draining`,
)
const GET = statement(
  'get_worker',
  `select ${WORKER.text} from belfry.workers w where w.shard = $1 and w.tenant_id = $2 and w.id = $3`,
)
/** Shard by shard along the primary key: the workers of other tenants are not walked. */
const LIST = statement(
  'list_workers',
  `select ${WORKER.text} from generate_series(0, $1::int - 1) as of_shard (shard) cross join lateral (
     select w.* from belfry.workers w
     where w.shard = of_shard.shard and w.tenant_id = $2 and w.id > $3 and ($4::text is null or $4 = any(w.queues))
       and ($5::boolean is null or (w.seen_at <= to_timestamp($7::float8 / 1000)) = $5) and ($6::boolean is null or w.is_draining = $6)
     order by w.shard, w.tenant_id, w.id limit $8) w
   order by w.id limit $8`,
)
const DELETE = statement(
  'delete_worker',
  'delete from belfry.workers w where w.shard = $1 and w.tenant_id = $2 and w.id = $3',
)
const PURGE = statement(
  'purge_workers',
  `with old as (
     select w.shard, w.tenant_id, w.id from belfry.workers w where w.seen_at < to_timestamp($1::float8 / 1000) limit $2
   )
   delete from belfry.workers w using old
   where w.shard = old.shard and w.tenant_id = old.tenant_id and w.id = old.id and w.seen_at < to_timestamp($1::float8 / 1000)`,
)

/** Which worker, in an installation of how many shards. */
export interface WorkerKey {
  tenantId: number
  id: string
  shards: number
}

export interface WorkerFields {
  queues?: readonly string[]
  capacity?: number
  version?: string
  labels?: Record<string, string>
  draining?: boolean
}

const placeOf = ({ tenantId, id, shards }: WorkerKey): [number, number, string] => [
  shardOfKey(tenantId, id, shards),
  tenantId,
  id,
]

/**
 * Registers a worker, or changes what is known of it. To ask it to drain is all that an operator does, so that alone does
 * not count as having seen it.
 */
export async function putWorker(db: Queryable, key: WorkerKey, fields: WorkerFields, now: Instant): Promise<WorkerRow> {
  const { queues, capacity, version, labels, draining } = fields
  const isSighting = queues !== undefined || capacity !== undefined || version !== undefined || labels !== undefined
  const [row] = await db.query<Row>(PUT, [
    ...placeOf(key),
    now,
    capacity ?? null,
    draining ?? null,
    version ?? null,
    queues === undefined ? null : queues,
    labels === undefined ? null : JSON.stringify(labels),
    isSighting || draining === undefined,
  ])
  return workerOf(row as Row)
}

/** A worker called: which one, for which queue, and how many runs it holds, which may be fewer since. Null: the call did not tell. */
export interface Sighting {
  tenantId: number
  id: string
  queue: string | null
  /** When it called last. */
  seenAt: Instant
  inFlight: number | null
  /** Makes it known if it is not. One that was seen before, and is gone from the registry, has left. */
  isNew: boolean
}

/** Makes the callers known, in one statement for all of them; answers which of them are there and whether they shall drain. */
export async function sawWorkers(
  db: Queryable,
  sightings: readonly Sighting[],
  shards: number,
): Promise<{ tenantId: number; id: string; isDraining: boolean }[]> {
  if (sightings.length === 0) return []
  const seen = eachOnce(sightings)
  const rows = await db.query<[number, string, boolean]>(SAW, [
    seen.map((one) => one.seenAt),
    seen.map((one) => shardOfKey(one.tenantId, one.id, shards)),
    seen.map((one) => one.tenantId),
    seen.map((one) => one.id),
    seen.map((one) => [...one.queues].slice(0, MAX_QUEUES).join(',')),
    seen.map((one) => one.inFlight),
    seen.map((one) => one.isNew),
  ])
  return rows.map(([tenantId, id, isDraining]) => ({ tenantId, id, isDraining }))
}

interface Seen extends Pick<Sighting, 'tenantId' | 'id' | 'isNew'> {
  queues: Set<string>
  seenAt: Instant
  inFlight: number
}

/** One statement can write a row once; of several sightings the last word on what is in flight counts. */
function eachOnce(sightings: readonly Sighting[]): Seen[] {
  const seen = new Map<string, Seen>()
  for (const { tenantId, id, queue, seenAt, inFlight, isNew } of sightings) {
    const key = `${tenantId}:${id}`
    let one = seen.get(key)
    if (one === undefined) {
      one = { tenantId, id, queues: new Set(), seenAt, inFlight: UNKNOWN, isNew: false }
      seen.set(key, one)
    }
    if (queue !== null) one.queues.add(queue)
    one.isNew ||= isNew
    one.seenAt = Math.max(one.seenAt, seenAt)
    if (inFlight !== null) one.inFlight = inFlight
  }
  return [...seen.values()]
}

export async function workerRow(db: Queryable, key: WorkerKey): Promise<WorkerRow | null> {
  const [row] = await db.query<Row>(GET, placeOf(key))
  return row === undefined ? null : workerOf(row)
}

export interface WorkerFilter {
  tenantId: number
  shards: number
  /** Only ids that sort after this one. */
  after: string
  queue: string | null
  isLost: boolean | null
  isDraining: boolean | null
  /** A worker that was last seen then or earlier is lost. */
  lostSince: Instant
  limit: number
}

/** In the order of their ids. */
export async function workerRows(db: Queryable, filter: WorkerFilter): Promise<WorkerRow[]> {
  const { shards, tenantId, after, queue, isLost, isDraining, lostSince, limit } = filter
  const rows = await db.query<Row>(LIST, [shards, tenantId, after, queue, isLost, isDraining, lostSince, limit])
  return rows.map(workerOf)
}

/** False: there was none. */
export async function deleteWorker(db: Queryable, key: WorkerKey): Promise<boolean> {
  return (await db.execute(DELETE, placeOf(key))) > 0
}

/** Forgets workers that were last seen before that, a bounded number at a time. */
export const purgeWorkers = (db: Queryable, before: Instant): Promise<number> =>
  db.execute(PURGE, [before, PURGE_BATCH])

function workerOf(row: Row) {
  const { queues, labels, inFlight, ...worker } = WORKER.read(row)
  return {
    ...worker,
    queues: [...new Set(JSON.parse(queues) as string[])].sort(),
    labels: labels === null ? {} : (JSON.parse(labels) as Record<string, string>),
    inFlight: Math.max(0, inFlight),
  }
}
