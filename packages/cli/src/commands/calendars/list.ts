import type { Calendar } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import type { Column } from '../../terminal/table.ts'
import { timeText } from '../../terminal/time-text.ts'

const COLUMNS: readonly Column<Calendar>[] = [
  { title: 'NAME', of: ({ name }) => name },
  { title: 'DAYS', of: ({ dayCount }) => String(dayCount) },
  { title: 'WEEKEND', of: ({ weekend }) => weekend.join(', '), spare: 1 },
  { title: 'UPDATED', of: ({ updatedAt }) => timeText(updatedAt), spare: 2 },
]

export const listCalendars: Command = {
  name: 'calendars list',
  summary: 'the calendars that schedules may exclude',
  operands: [],
  flags: LIST_FLAGS,
  async run({ flags, terminal, api }) {
    const found = await (await api()).list<Calendar>('/v1/calendars', {}, limitOf(flags))
    terminal.list(COLUMNS, found, 'there are no calendars')
  },
}
