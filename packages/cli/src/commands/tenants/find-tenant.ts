import type { Api } from '../../api/api.ts'
import { Problem } from '../../api/problem.ts'
import type { Tenant } from '../../api/shapes.ts'
import type { Operand } from '../../command/command.ts'

/** More than an installation has by hand; who has more knows the ids. */
const LOOKED_AT = 10_000

export const TENANT_OPERAND: Operand = { name: 'tenant', about: "the tenant's id or name" }

export async function findTenantId(api: Api, tenant: string): Promise<string> {
  if (/^\d+$/.test(tenant)) return tenant
  const { items } = await api.list<Tenant>('/v1/tenants', {}, LOOKED_AT)
  const found = items.find(({ name }) => name === tenant)
  if (found) return String(found.id)
  throw new Problem(`there is no tenant called ${JSON.stringify(tenant)} (not_found)`, {
    status: 404,
    code: 'not_found',
  })
}
