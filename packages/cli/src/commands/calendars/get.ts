import type { Calendar } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { CALENDAR_OPERAND, showCalendar } from './calendar-table.ts'

export const getCalendar: Command = {
  name: 'calendars get',
  summary: 'one calendar with its days',
  operands: [CALENDAR_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    showCalendar(terminal, await (await api()).get<Calendar>(`/v1/calendars/${encodeURIComponent(name)}`))
  },
}
