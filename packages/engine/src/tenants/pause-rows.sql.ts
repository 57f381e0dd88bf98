import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'

const PAUSE = columns({
  id: column<string>('p.id'),
  kind: column<number>('p.kind'),
  name: column<string>('p.name'),
  pausedAt: column<Instant>('p.paused_at'),
  pausedBy: column<string>('p.paused_by'),
  reason: column<string | null>('p.reason'),
})
export type PauseRow = Read<typeof PAUSE>
type Row = RowOf<PauseRow>

/** One that has ended, and is not forgotten yet, begins anew. */
const PUT = statement(
  'put_pause',
  `insert into belfry.pauses as p (paused_at, id, tenant_id, kind, name, paused_by, reason)
   values (to_timestamp($1::float8 / 1000), $2, $3, $4, $5, $6, $7)
   on conflict (tenant_id, kind, name) do update
     set paused_at = excluded.paused_at, ended_at = null, id = excluded.id, paused_by = excluded.paused_by, reason = excluded.reason
     where p.ended_at is not null
   returning p.id`,
)
const LOCK_NAMED = statement(
  'lock_named_pause',
  `select ${PAUSE.text} from belfry.pauses p where p.tenant_id = $1 and p.kind = $2 and p.name = $3 and p.ended_at is null for update`,
)
const LOCK = statement(
  'lock_pause',
  `select ${PAUSE.text} from belfry.pauses p where p.tenant_id = $1 and p.id = $2 and p.ended_at is null for update`,
)
const SET_PAUSER = statement('set_pauser', 'update belfry.pauses p set paused_by = $2, reason = $3 where p.id = $1')
const END = statement(
  'end_pause',
  'update belfry.pauses p set ended_at = to_timestamp($2::float8 / 1000) where p.id = $1',
)
const HAS_ENDED = statement(
  'pause_has_ended',
  'select exists (select from belfry.pauses p where p.tenant_id = $1 and p.id = $2 and p.ended_at is not null)',
)
const LIST = statement(
  'list_pauses',
  `select ${PAUSE.text} from belfry.pauses p where p.tenant_id = $1 and p.ended_at is null order by p.kind, p.name limit $2`,
)
const COUNT = statement(
  'count_pauses',
  'select count(*)::int from (select from belfry.pauses p where p.tenant_id = $1 limit $2) p',
)
const COUNT_ALL = statement(
  'count_all_pauses',
  'select count(*)::int from (select from belfry.pauses p where p.kind <> $1 limit $2) p',
)
const PAUSED_QUEUE = columns({
  name: column<string>('q.name'),
  pausedAt: column<Instant>('q.paused_at'),
  pausedBy: column<string | null>('q.paused_by'),
  reason: column<string | null>('q.pause_reason'),
})
type PausedQueue = Read<typeof PAUSED_QUEUE>
const PAUSED_QUEUES = statement(
  'list_paused_queues',
  `select ${PAUSED_QUEUE.text} from belfry.queues q
   where q.tenant_id = $1 and q.paused_at is not null and q.deleted_at is null order by q.name limit $2`,
)

/** False: it is paused already, and stays as it is. */
export async function putPause(tx: Queryable, tenantId: number, pause: PauseRow): Promise<boolean> {
  const { id, kind, name, pausedAt, pausedBy, reason } = pause
  return (await tx.query(PUT, [pausedAt, id, tenantId, kind, name, pausedBy, reason])).length === 1
}

/** Held until the end of the transaction; null: it is not paused. */
export async function lockNamedPause(
  tx: Queryable,
  tenantId: number,
  { kind, name }: Pick<PauseRow, 'kind' | 'name'>,
): Promise<PauseRow | null> {
  const [row] = await tx.query<Row>(LOCK_NAMED, [tenantId, kind, name])
  return row ? PAUSE.read(row) : null
}

/** Null: there is none of this id, or it has ended before. */
export async function lockPause(tx: Queryable, tenantId: number, id: string): Promise<PauseRow | null> {
  const [row] = await tx.query<Row>(LOCK, [tenantId, id])
  return row ? PAUSE.read(row) : null
}

export async function setPauser(tx: Queryable, { id, pausedBy, reason }: PauseRow): Promise<void> {
  await tx.execute(SET_PAUSER, [id, pausedBy, reason])
}

export async function endPause(tx: Queryable, id: string, at: Instant): Promise<void> {
  await tx.execute(END, [id, at])
}

/** It has ended a moment ago. */
export async function pauseHasEnded(db: Queryable, tenantId: number, id: string): Promise<boolean> {
  return (await db.query<[boolean]>(HAS_ENDED, [tenantId, id]))[0]?.[0] === true
}

export const listPauses = async (db: Queryable, tenantId: number, limit: number): Promise<PauseRow[]> =>
  (await db.query<Row>(LIST, [tenantId, limit])).map((row) => PAUSE.read(row))

export const countPauses = async (tx: Queryable, tenantId: number, limit: number): Promise<number> =>
  (await tx.query<[number]>(COUNT, [tenantId, limit]))[0]?.[0] ?? 0

/** Those of all tenants, but for one kind. */
export const countAllPauses = async (tx: Queryable, exceptKind: number, limit: number): Promise<number> =>
  (await tx.query<[number]>(COUNT_ALL, [exceptKind, limit]))[0]?.[0] ?? 0

export const listPausedQueues = async (db: Queryable, tenantId: number, limit: number): Promise<PausedQueue[]> =>
  (await db.query<RowOf<PausedQueue>>(PAUSED_QUEUES, [tenantId, limit])).map((row) => PAUSED_QUEUE.read(row))
