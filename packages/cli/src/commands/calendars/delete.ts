import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { CALENDAR_OPERAND } from './calendar-table.ts'

export const deleteCalendar: Command = {
  name: 'calendars delete',
  summary: 'remove a calendar that no active job names',
  operands: [CALENDAR_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    await (await api()).ask('DELETE', `/v1/calendars/${encodeURIComponent(name)}`)
    terminal.answer({ calendar: name, status: 'deleted' }, `${name} is deleted`)
  },
}
