import type { Origin } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import { rateText, slotsText } from '../../limit-fields.ts'
import type { Column } from '../../terminal/table.ts'

const COLUMNS: readonly Column<Origin>[] = [
  { title: 'ORIGIN', of: ({ origin }) => origin },
  { title: 'MAX', of: slotsText },
  { title: 'RATE', of: rateText },
]

export const listOrigins: Command = {
  name: 'origins list',
  summary: 'the origins whose calls are limited',
  operands: [],
  flags: LIST_FLAGS,
  async run({ flags, terminal, api }) {
    const found = await (await api()).list<Origin>('/v1/origins', {}, limitOf(flags))
    terminal.list(COLUMNS, found, 'no origin is limited')
  },
}
