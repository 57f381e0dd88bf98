import type { Pause } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

const COLUMNS: readonly Column<Pause>[] = [
  { title: 'WHAT', of: ({ kind }) => kind },
  { title: 'NAME', of: ({ name }) => name ?? '' },
  { title: 'SINCE', of: ({ pausedAt }) => timeText(pausedAt) },
  { title: 'BY', of: ({ pausedBy }) => pausedBy ?? '', spare: 1 },
  { title: 'REASON', of: ({ reason }) => reason ?? '', spare: 2 },
]

export const listPauses: Command = {
  name: 'pauses',
  summary: 'what is paused: the tenant, keys, origins and queues',
  operands: [],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  details: '  Paused jobs: belfry jobs list --status paused',
  async run({ terminal, api }) {
    const { items } = await (await api()).get<{ items: Pause[] }>('/v1/pauses')
    terminal.list(COLUMNS, { items, more: false }, 'nothing is paused')
  },
}
