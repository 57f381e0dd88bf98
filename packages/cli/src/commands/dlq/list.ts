import type { DeadLetter } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'
import { DEAD_LETTER_FLAGS, deadLetterFilter } from './filter.ts'

const COLUMNS: readonly Column<DeadLetter>[] = [
  { title: 'RUN', of: ({ runId }) => runId },
  { title: 'DIED', of: ({ diedAt }) => timeText(diedAt), spare: 2 },
  { title: 'QUEUE', of: ({ queue }) => queue ?? '', spare: 3 },
  { title: 'FAILURE', of: ({ failureClass, error }) => [failureClass, error].filter(Boolean).join(': '), atLeast: 12 },
]

export const listDeadLetters: Command = {
  name: 'dlq list',
  summary: 'runs that failed for good, latest first',
  operands: [],
  flags: { ...DEAD_LETTER_FLAGS, ...LIST_FLAGS },
  async run({ flags, terminal, api }) {
    const node = await api()
    const letters = await node.list<DeadLetter>('/v1/dead-letters', await deadLetterFilter(node, flags), limitOf(flags))
    terminal.list(COLUMNS, letters, 'there are no such dead letters')
  },
}
