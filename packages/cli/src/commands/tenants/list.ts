import type { Tenant } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, LIST_FLAGS, limitOf } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

const COLUMNS: readonly Column<Tenant>[] = [
  { title: 'ID', of: ({ id }) => String(id) },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'TIER', of: ({ tier }) => tier ?? '', spare: 1 },
  { title: 'WEIGHT', of: ({ weight }) => String(weight ?? ''), spare: 2 },
  { title: 'CREATED', of: ({ createdAt }) => timeText(createdAt), spare: 4 },
  { title: 'QUOTAS', of: ({ quotas }) => quotasText(quotas), atLeast: 12, spare: 3 },
]

export const listTenants: Command = {
  name: 'tenants list',
  summary: 'the tenants',
  operands: [],
  flags: { limit: LIST_FLAGS.limit ?? { about: '' }, all: LIST_FLAGS.all ?? { about: '' }, ...JSON_FLAG },
  async run({ flags, terminal, api }) {
    terminal.list(COLUMNS, await (await api()).list<Tenant>('/v1/tenants', {}, limitOf(flags)), 'there are no tenants')
  },
}

function quotasText(quotas: Tenant['quotas']): string {
  return Object.entries(quotas ?? {})
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
