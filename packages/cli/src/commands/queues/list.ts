import type { Queue } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import { QUEUE_COLUMNS } from './queue-table.ts'

export const listQueues: Command = {
  name: 'queues list',
  summary: 'the queues, what waits in them, and their limits',
  operands: [],
  flags: LIST_FLAGS,
  async run({ flags, terminal, api }) {
    const found = await (await api()).list<Queue>('/v1/queues', {}, limitOf(flags))
    terminal.list(QUEUE_COLUMNS, found, 'there are no queues')
  },
}
