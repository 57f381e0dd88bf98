import type { Tenant } from '../../api/shapes.ts'
import { type Command, JSON_FLAG } from '../../command/command.ts'
import { readTenant, TENANT_FIELD_FLAGS, tenantFields } from './tenant-fields.ts'

export const createTenant: Command = {
  name: 'tenants create',
  summary: 'make a tenant',
  operands: [{ name: 'name', about: 'its name: letters, digits, . _ -' }],
  flags: { ...TENANT_FIELD_FLAGS, ...JSON_FLAG },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const tenant = await (await api()).post<Tenant>('/v1/tenants', { name, ...readTenant(flags) })
    terminal.details(tenant, tenantFields(tenant))
  },
}
