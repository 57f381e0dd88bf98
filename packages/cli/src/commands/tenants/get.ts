import type { Tenant } from '../../api/shapes.ts'
import { type Command, JSON_FLAG } from '../../command/command.ts'
import { findTenantId, TENANT_OPERAND } from './find-tenant.ts'
import { tenantFields } from './tenant-fields.ts'

export const getTenant: Command = {
  name: 'tenants get',
  summary: 'one tenant with its quotas',
  operands: [TENANT_OPERAND],
  flags: JSON_FLAG,
  async run({ operands: [name = ''], terminal, api }) {
    const node = await api()
    const tenant = await node.get<Tenant>(`/v1/tenants/${await findTenantId(node, name)}`)
    terminal.details(tenant, tenantFields(tenant))
  },
}
