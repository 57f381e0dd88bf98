import type { Calendar } from '../../api/shapes.ts'
import type { Operand } from '../../command/command.ts'
import type { Field } from '../../terminal/details.ts'
import type { Column } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { timeText } from '../../terminal/time-text.ts'

export const CALENDAR_OPERAND: Operand = { name: 'calendar', about: 'its name' }

const DAYS: readonly Column<{ date: string; name?: string }>[] = [
  { title: 'DAY', of: ({ date }) => date },
  { title: 'NAME', of: ({ name }) => name ?? '' },
]

/** One calendar with its days. */
export function showCalendar(terminal: Terminal, calendar: Calendar): void {
  const fields: Field[] = [
    ['name', calendar.name],
    ['days', calendar.dayCount],
    ['weekend', calendar.weekend.join(', ')],
    ['updated', timeText(calendar.updatedAt)],
    ['jobs', calendar.replanning ? 'are being planned anew' : 'follow it'],
  ]
  const days = calendar.days ?? []
  terminal.details(calendar, fields, days.length === 0 ? '' : terminal.table(DAYS, days))
}
