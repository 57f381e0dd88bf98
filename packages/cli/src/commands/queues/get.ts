import type { Queue } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { QUEUE_OPERAND, showQueue } from './queue-table.ts'

export const getQueue: Command = {
  name: 'queues get',
  summary: 'one queue',
  operands: [QUEUE_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    showQueue(terminal, await (await api()).get<Queue>(`/v1/queues/${encodeURIComponent(name)}`))
  },
}
