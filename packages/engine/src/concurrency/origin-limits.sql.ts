import { LIMIT_KIND } from '../job/states.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Limits, limitsOf } from './shared-limits.sql.ts'

const COLUMNS = 'l.name, l.max_running, l.rate_count, l.rate_period_ms, l.rate_burst'

/** More than these of one tenant are not read: a tenant calls few origins that it limits. */
const MAX_OF_TENANT = 10_000

const NAMES = statement(
  'limited_origins',
  `select u.tenant_id, l.name from unnest($1::int[]) as u (tenant_id) cross join lateral (
     select l.name from belfry.limits l where l.tenant_id = u.tenant_id and l.kind = ${LIMIT_KIND.origin} limit ${MAX_OF_TENANT}) l`,
)
const LIST = statement(
  'list_origin_limits',
  `select ${COLUMNS} from belfry.limits l
   where l.tenant_id = $1 and l.kind = ${LIMIT_KIND.origin} and l.name > $2 order by l.name limit $3`,
)
const ONE = statement(
  'get_origin_limits',
  `select ${COLUMNS} from belfry.limits l where l.tenant_id = $1 and l.kind = ${LIMIT_KIND.origin} and l.name = $2`,
)

type Row = readonly [string, number | null, number | null, string | null, number | null]

export interface OriginLimit extends Limits {
  origin: string
}

const originOf = ([origin, ...columns]: Row): OriginLimit => ({ origin, ...limitsOf(columns) })

/** By tenant, the origins that it has limited. */
export async function limitedOrigins(db: Queryable, tenantIds: readonly number[]): Promise<Map<number, Set<string>>> {
  const found = new Map(tenantIds.map((tenantId) => [tenantId, new Set<string>()]))
  const rows = await db.query<[number, string]>(NAMES, [tenantIds])
  for (const [tenantId, origin] of rows) found.get(tenantId)?.add(origin)
  return found
}

export async function listOriginLimits(
  db: Queryable,
  tenantId: number,
  { after, limit }: { after: string; limit: number },
): Promise<OriginLimit[]> {
  return (await db.query<Row>(LIST, [tenantId, after, limit])).map(originOf)
}

/** Null: there is none. */
export async function readOriginLimit(db: Queryable, tenantId: number, origin: string): Promise<OriginLimit | null> {
  const [row] = await db.query<Row>(ONE, [tenantId, origin])
  return row ? originOf(row) : null
}
