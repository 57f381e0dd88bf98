import type { Tenant } from '../../api/shapes.ts'
import { type Command, JSON_FLAG } from '../../command/command.ts'
import { UsageError } from '../../usage-error.ts'
import { findTenantId, TENANT_OPERAND } from './find-tenant.ts'
import { readTenant, TENANT_FIELD_FLAGS, tenantFields } from './tenant-fields.ts'

export const updateTenant: Command = {
  name: 'tenants update',
  summary: "change a tenant's tier, weight or quotas",
  operands: [TENANT_OPERAND],
  flags: { ...TENANT_FIELD_FLAGS, ...JSON_FLAG },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const patch = readTenant(flags)
    if (Object.keys(patch).length === 0)
      throw new UsageError(
        `there is nothing to change: give one of ${Object.keys(TENANT_FIELD_FLAGS)
          .map((flag) => `--${flag}`)
          .join(', ')}`,
      )
    const node = await api()
    const tenant = await node.ask<Tenant>('PATCH', `/v1/tenants/${await findTenantId(node, name)}`, { body: patch })
    terminal.details(tenant, tenantFields(tenant))
  },
}
