import { type Command, JSON_FLAG } from '../../command/command.ts'
import { findTenantId, TENANT_OPERAND } from './find-tenant.ts'

export const deleteTenant: Command = {
  name: 'tenants delete',
  summary: 'remove a tenant that has no jobs and no runs',
  operands: [TENANT_OPERAND],
  flags: JSON_FLAG,
  async run({ operands: [name = ''], terminal, api }) {
    const node = await api()
    await node.ask('DELETE', `/v1/tenants/${await findTenantId(node, name)}`)
    terminal.answer({ tenant: name, status: 'deleted' }, `${name} is deleted`)
  },
}
