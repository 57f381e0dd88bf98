import type { Queue } from '../../api/shapes.ts'
import type { Operand } from '../../command/command.ts'
import { rateText, slotsText } from '../../limit-fields.ts'
import type { Field } from '../../terminal/details.ts'
import type { Column } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const QUEUE_OPERAND: Operand = { name: 'queue', about: 'its name' }

const stateOf = ({ paused }: Queue): string => (paused ? 'paused' : '')

export const QUEUE_COLUMNS: readonly Column<Queue>[] = [
  { title: 'QUEUE', of: ({ name }) => name },
  { title: 'READY', of: ({ depth }) => String(depth.ready) },
  { title: 'RUNNING', of: ({ depth }) => String(depth.running) },
  { title: 'WAITING', of: ({ depth }) => String(depth.waiting) },
  { title: 'MAX', of: slotsText, spare: 1 },
  { title: 'RATE', of: rateText, spare: 2 },
  { title: 'STATE', of: stateOf, spare: 3 },
]

export function showQueue(terminal: Terminal, queue: Queue): void {
  const fields: Field[] = [
    ['queue', queue.name],
    ['kind', queue.kind],
    ['ready', queue.depth.ready],
    ['running', queue.depth.running],
    ['waiting', queue.depth.waiting],
    ['max running', slotsText(queue) || 'no limit'],
    ['rate', rateText(queue) || 'no limit'],
    ['state', stateOf(queue) || 'open'],
  ]
  terminal.details(queue, fields)
}
