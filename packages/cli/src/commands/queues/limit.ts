import type { Queue } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { LIMIT_FLAGS, readLimits } from '../../limit-fields.ts'
import { QUEUE_OPERAND, showQueue } from './queue-table.ts'

export const limitQueue: Command = {
  name: 'queues limit',
  summary: 'how many runs of a queue may be under way at a time, or start in a period',
  operands: [QUEUE_OPERAND],
  flags: { ...LIMIT_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  details: `  belfry queues limit emails --max-running 20
  belfry queues limit emails --rate 100/1s --burst 20
  belfry queues limit emails --max-running none`,
  async run({ operands: [name = ''], flags, terminal, api }) {
    const path = `/v1/queues/${encodeURIComponent(name)}`
    showQueue(terminal, await (await api()).ask<Queue>('PUT', path, { body: readLimits(flags) }))
  },
}
