import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import type { TenantQuotas } from './understand-tenant.ts'

export interface TenantView {
  id: number
  name: string
  tier: string
  weight: number
  quotas: TenantQuotas
  createdAt: Date
}

const TENANT = columns({
  id: column<number>('t.id'),
  name: column<string>('t.name'),
  tier: column<string>('t.tier'),
  weight: column<number>('t.weight'),
  createdAt: column<Instant>('t.created_at'),
  activeJobs: column<number | null>('t.max_active_jobs'),
  createsPerSecond: column<number | null>('t.creates_per_second'),
  requestsPerSecond: column<number | null>('t.requests_per_second'),
  payloadBytes: column<number | null>('t.max_payload_bytes'),
  waitingRuns: column<number | null>('t.max_waiting_runs'),
  waitingSeconds: column<number | null>('t.max_waiting_seconds'),
})
type Row = RowOf<Read<typeof TENANT>>

/**
 * The number after the highest that was ever given out: a deleted tenant's is not given to another, whose it would make all
 * that stands in history. The row in `meta` makes those who create at the same time wait for each other.
 */
const NEXT_ID = statement(
  'next_tenant_id',
  `insert into belfry.meta as m (key, value) select 'last_tenant_id', to_jsonb(max(t.id) + 1) from belfry.tenants t
   on conflict (key) do update set value = to_jsonb(greatest((m.value #>> '{}')::int + 1, (excluded.value #>> '{}')::int))
   returning (m.value #>> '{}')::int`,
)
const PUT = statement(
  'put_tenant',
  `insert into belfry.tenants as t (id, name, tier, weight, created_at,
     max_active_jobs, creates_per_second, requests_per_second, max_payload_bytes, max_waiting_runs, max_waiting_seconds)
   values ($1, $2, $3, $4, to_timestamp($5::float8 / 1000), $6, $7, $8, $9, $10, $11) on conflict (name) do nothing returning ${TENANT.text}`,
)
const WRITE = statement(
  'write_tenant',
  `update belfry.tenants t set tier = $2, weight = $3, max_active_jobs = $4, creates_per_second = $5, requests_per_second = $6, max_payload_bytes = $7,
     max_waiting_runs = $8, max_waiting_seconds = $9
   where t.id = $1`,
)
const READ = statement('read_tenant', `select ${TENANT.text} from belfry.tenants t where t.id = $1`)
const READ_NAMED = statement('read_tenant_by_name', `select ${TENANT.text} from belfry.tenants t where t.name = $1`)
const LOCK = statement('lock_whole_tenant', `select ${TENANT.text} from belfry.tenants t where t.id = $1 for update`)
const BEGIN_DELETION = statement(
  'begin_tenant_deletion',
  'update belfry.tenants t set deletion = gen_random_uuid() where t.id = $1 returning t.deletion',
)
const END_DELETION = statement(
  'end_tenant_deletion',
  'update belfry.tenants t set deletion = null where t.id = $1 and t.deletion = $2',
)
const IS_DELETION = statement(
  'is_tenant_deletion',
  'select exists (select from belfry.tenants t where t.id = $1 and t.deletion = $2)',
)
/**
 * Transactions that may have inserted a job. The executor takes its snapshot after the locks of its tables, so whoever is
 * not among them sees what was committed before this was asked.
 */
const INSERTING = statement(
  'transactions_that_insert_jobs',
  `select distinct l.virtualtransaction from pg_locks l
   where l.locktype = 'relation' and l.database = (select d.oid from pg_database d where d.datname = current_database())
     and l.relation in ('belfry.jobs'::regclass, 'belfry.specs'::regclass) and l.mode = 'RowExclusiveLock' and l.granted
     and l.pid is distinct from pg_backend_pid()`,
)
const LIST = statement(
  'list_tenants',
  `select ${TENANT.text} from belfry.tenants t where t.id > $1 order by t.id limit $2`,
)
const COUNT_LIMITED = statement(
  'count_limited_tenants',
  `select count(*)::int from (select from belfry.tenants t where t.max_waiting_runs is not null or t.max_waiting_seconds is not null limit $1) t`,
)
/** Whether it has anything with a future or in flight. */
const IS_BUSY = statement(
  'tenant_is_busy',
  `select exists (select from belfry.timers t where t.tenant_id = $1 and t.tenant_id <> 1)
     or exists (select from belfry.runs r where r.tenant_id = $1 and r.tenant_id <> 1)`,
)
const DELETE = statement(
  'delete_tenant',
  `with keys as (delete from belfry.api_keys k where k.tenant_id = $1),
   secrets as (delete from belfry.secrets s where s.tenant_id = $1),
   signing_keys as (delete from belfry.signing_keys s where s.tenant_id = $1),
   calendars as (delete from belfry.calendars c where c.tenant_id = $1),
   circuits as (delete from belfry.circuits c where c.tenant_id = $1),
   pauses as (delete from belfry.pauses p where p.tenant_id = $1),
   limits as (delete from belfry.limits l where l.tenant_id = $1),
   batches as (delete from belfry.batches b where b.tenant_id = $1)
   delete from belfry.tenants t where t.id = $1`,
)

function viewOf(row: Row): TenantView {
  const { id, name, tier, weight, createdAt, ...quotas } = TENANT.read(row)
  return { id, name, tier, weight, quotas, createdAt: new Date(createdAt) }
}

const quotaValues = (quotas: TenantQuotas): (number | null)[] => [
  quotas.activeJobs,
  quotas.createsPerSecond,
  quotas.requestsPerSecond,
  quotas.payloadBytes,
  quotas.waitingRuns,
  quotas.waitingSeconds,
]

const firstOf = (rows: Row[]): TenantView | null => (rows[0] ? viewOf(rows[0]) : null)

/** Null: the name is taken. */
export async function putTenant(
  tx: Queryable,
  tenant: Omit<TenantView, 'id' | 'createdAt'>,
  now: Instant,
): Promise<TenantView | null> {
  const [next] = await tx.query<[number]>(NEXT_ID, [])
  const { name, tier, weight, quotas } = tenant
  return firstOf(await tx.query<Row>(PUT, [next?.[0], name, tier, weight, now, ...quotaValues(quotas)]))
}

export async function writeTenant(tx: Queryable, { id, tier, weight, quotas }: TenantView): Promise<void> {
  await tx.execute(WRITE, [id, tier, weight, ...quotaValues(quotas)])
}

export const readTenant = async (db: Queryable, id: number): Promise<TenantView | null> =>
  firstOf(await db.query<Row>(READ, [id]))

export const readTenantNamed = async (db: Queryable, name: string): Promise<TenantView | null> =>
  firstOf(await db.query<Row>(READ_NAMED, [name]))

export const lockTenant = async (tx: Queryable, id: number): Promise<TenantView | null> =>
  firstOf(await tx.query<Row>(LOCK, [id]))

export const listTenants = async (db: Queryable, after: number, limit: number): Promise<TenantView[]> =>
  (await db.query<Row>(LIST, [after, limit])).map(viewOf)

/** Tenants that have a limit of what waits, which every node is told every second. */
export const countLimitedTenants = async (tx: Queryable, limit: number): Promise<number> =>
  (await tx.query<[number]>(COUNT_LIMITED, [limit]))[0]?.[0] ?? 0

export async function isBusy(tx: Queryable, id: number): Promise<boolean> {
  const [row] = await tx.query<[boolean]>(IS_BUSY, [id])
  return row?.[0] === true
}

/** From its commit on no insert of a job finds the tenant. Answers the name of this deletion. */
export async function beginDeletion(tx: Queryable, id: number): Promise<string> {
  const [row] = await tx.query<[string]>(BEGIN_DELETION, [id])
  return row?.[0] as string
}

export const endDeletion = (db: Queryable, id: number, deletion: string): Promise<number> =>
  db.execute(END_DELETION, [id, deletion])

/** False: somebody else has begun to delete it since. */
export async function isDeletion(tx: Queryable, id: number, deletion: string): Promise<boolean> {
  return (await tx.query<[boolean]>(IS_DELETION, [id, deletion]))[0]?.[0] === true
}

export async function insertingTransactions(db: Queryable): Promise<Set<string>> {
  return new Set((await db.query<[string]>(INSERTING, [])).map(([transaction]) => transaction))
}

/** With its keys, secrets and circuits. What has happened stays; payloads expire by themselves, and nobody can read them. */
export const deleteTenant = (tx: Queryable, id: number): Promise<number> => tx.execute(DELETE, [id])
