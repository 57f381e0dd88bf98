import type { Instant } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { statement } from '../store/statement.ts'
import { type Role, rolesOfBits } from './roles.ts'

/** Those that count as live for the pulse too. */
const LIST = statement(
  'list_nodes',
  `select n.id, n.address, n.roles, n.started_at, n.pulsed_at from belfry.nodes n
   where n.pulsed_at > clock_timestamp() - interval '2500 ms' order by n.started_at, n.id limit 10000`,
)

export interface NodeView {
  id: string
  /** Where it is reached, if it serves HTTP. */
  address: string | null
  roles: Role[]
  startedAt: Date
  pulsedAt: Date
}

export async function listNodes(db: Queryable): Promise<NodeView[]> {
  const rows = await db.query<[string, string | null, number, Instant, Instant]>(LIST, [])
  return rows.map(([id, address, roles, startedAt, pulsedAt]) => ({
    id,
    address,
    roles: rolesOfBits(roles),
    startedAt: new Date(startedAt),
    pulsedAt: new Date(pulsedAt),
  }))
}
