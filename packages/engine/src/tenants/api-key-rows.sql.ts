import type { Instant } from '../runtime/clock.ts'
import { column, columns, type Read, type RowOf } from '../store/columns.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { SCOPES } from './scopes.ts'

const KEY = columns({
  id: column<string>('k.id'),
  tenantId: column<number>('k.tenant_id'),
  tenant: column<string>('t.name'),
  name: column<string>('k.name'),
  prefix: column<string>('k.prefix'),
  scopes: column<string>("array_to_string(k.scopes, ',')"),
  createdAt: column<Instant>('k.created_at'),
  expiresAt: column<Instant | null>('k.expires_at'),
  revokedAt: column<Instant | null>('k.revoked_at'),
})
type Row = RowOf<Read<typeof KEY>>
export type ApiKeyRow = ReturnType<typeof keyOf>

const KEYS = 'belfry.api_keys k join belfry.tenants t on t.id = k.tenant_id'

const PUT = statement(
  'put_api_key',
  `insert into belfry.api_keys (created_at, expires_at, id, tenant_id, name, prefix, scopes, hash)
   select to_timestamp($1::float8 / 1000), to_timestamp($2::float8 / 1000), $3, t.id, $5, $6, $7::text[], $8
   from belfry.tenants t where t.id = $4 for key share`,
)
const FIND = statement('find_api_key', `select ${KEY.text} from ${KEYS} where k.hash = $1`)
const GET = statement('get_api_key', `select ${KEY.text} from ${KEYS} where k.id = $1`)
const LOCK = statement(
  'lock_api_key',
  `select ${KEY.text}, encode(k.hash, 'hex') from ${KEYS} where k.id = $1 for update of k`,
)
/** The deletion of a tenant takes the tenant before its keys: so does what makes a key of another. */
const HOLD_TENANT = statement(
  'hold_tenant_of_api_key',
  `select t.id from belfry.tenants t where t.id = (select k.tenant_id from belfry.api_keys k where k.id = $1) for key share`,
)
const LIST = statement(
  'list_api_keys',
  `select ${KEY.text} from ${KEYS} where k.tenant_id = $1 and k.id < $2::uuid order by k.id desc limit $3`,
)
const LIST_ALL = statement(
  'list_all_api_keys',
  `select ${KEY.text} from ${KEYS} where k.id < $1::uuid order by k.id desc limit $2`,
)
const REVOKE = statement(
  'revoke_api_key',
  'update belfry.api_keys k set revoked_at = to_timestamp($2::float8 / 1000) where k.id = $1',
)
const EXPIRE = statement(
  'expire_api_key',
  'update belfry.api_keys k set expires_at = least(k.expires_at, to_timestamp($2::float8 / 1000)) where k.id = $1',
)

function keyOf(row: Row) {
  const { scopes, ...key } = KEY.read(row)
  const known = scopes.split(',')
  return { ...key, scopes: SCOPES.filter((scope) => known.includes(scope)) }
}

/** Before the key is locked. */
export async function holdTenantOfApiKey(tx: Queryable, id: string): Promise<void> {
  await tx.query(HOLD_TENANT, [id])
}

/** False: there is no such tenant. */
export async function putApiKey(
  tx: Queryable,
  key: Omit<ApiKeyRow, 'tenant' | 'revokedAt'> & { hash: Buffer },
): Promise<boolean> {
  const { createdAt, expiresAt, id, tenantId, name, prefix, scopes, hash } = key
  return (await tx.execute(PUT, [createdAt, expiresAt, id, tenantId, name, prefix, scopes, hash])) > 0
}

export async function findApiKey(db: Queryable, hash: Buffer): Promise<ApiKeyRow | null> {
  const [row] = await db.query<Row>(FIND, [hash])
  return row ? keyOf(row) : null
}

export async function getApiKey(db: Queryable, id: string): Promise<ApiKeyRow | null> {
  const [row] = await db.query<Row>(GET, [id])
  return row ? keyOf(row) : null
}

export async function lockApiKey(tx: Queryable, id: string): Promise<(ApiKeyRow & { hash: string }) | null> {
  const [row] = await tx.query<Row>(LOCK, [id])
  return row ? { ...keyOf(row), hash: KEY.behind(row)[0] as string } : null
}

/** Newest first. Without a tenant: those of all. */
export async function listApiKeys(
  db: Queryable,
  tenantId: number | null,
  before: string,
  limit: number,
): Promise<ApiKeyRow[]> {
  const rows =
    tenantId === null
      ? await db.query<Row>(LIST_ALL, [before, limit])
      : await db.query<Row>(LIST, [tenantId, before, limit])
  return rows.map(keyOf)
}

export const revokeApiKey = (tx: Queryable, id: string, now: Instant): Promise<number> => tx.execute(REVOKE, [id, now])

export const expireApiKey = (tx: Queryable, id: string, at: Instant): Promise<number> => tx.execute(EXPIRE, [id, at])
