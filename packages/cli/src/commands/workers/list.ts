import type { Worker } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

const COLUMNS: readonly Column<Worker>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'QUEUES', of: ({ queues }) => queues.join(','), atLeast: 8 },
  { title: 'IN FLIGHT', of: ({ inFlight }) => String(inFlight) },
  { title: 'CAPACITY', of: ({ capacity }) => String(capacity ?? ''), spare: 3 },
  { title: 'VERSION', of: ({ version }) => version ?? '', spare: 2 },
  { title: 'LAST SEEN', of: ({ lastSeenAt }) => timeText(lastSeenAt), spare: 1 },
]

export const listWorkers: Command = {
  name: 'workers list',
  summary: 'who performs runs elsewhere, and how many they hold',
  operands: [],
  flags: {
    queue: { value: 'name', about: 'only workers of this queue' },
    status: { value: 'status', about: 'active, draining or lost' },
    ...LIST_FLAGS,
  },
  async run({ flags, terminal, api }) {
    const node = await api()
    const query = { queue: flags.text('queue'), status: flags.text('status') }
    terminal.list(COLUMNS, await node.list<Worker>('/v1/workers', query, limitOf(flags)), 'there are no workers')
  },
}
