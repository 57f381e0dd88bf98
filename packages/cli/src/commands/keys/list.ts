import type { ApiKey } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'
import { findTenantId } from '../tenants/find-tenant.ts'

const COLUMNS: readonly Column<ApiKey>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'NAME', of: ({ name }) => name, atLeast: 8 },
  { title: 'KEY', of: ({ prefix }) => `${prefix}…`, spare: 3 },
  { title: 'TENANT', of: ({ tenantId }) => String(tenantId ?? ''), spare: 5 },
  { title: 'SCOPES', of: ({ scopes }) => scopes.join(','), spare: 2 },
  { title: 'CREATED', of: ({ createdAt }) => timeText(createdAt), spare: 6 },
  { title: 'EXPIRES', of: ({ expiresAt }) => timeText(expiresAt), spare: 4 },
  { title: 'REVOKED', of: ({ revokedAt }) => timeText(revokedAt), spare: 1 },
]

export const listKeys: Command = {
  name: 'keys list',
  summary: 'the API keys, without what makes them keys',
  operands: [],
  flags: LIST_FLAGS,
  async run({ flags, terminal, api }) {
    const node = await api()
    const tenant = flags.text('tenant')
    const query = { tenantId: tenant === undefined ? undefined : await findTenantId(node, tenant) }
    terminal.list(COLUMNS, await node.list<ApiKey>('/v1/api-keys', query, limitOf(flags)), 'there are no keys')
  },
}
