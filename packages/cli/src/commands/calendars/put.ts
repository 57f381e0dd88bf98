import type { Calendar } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { CALENDAR_OPERAND, showCalendar } from './calendar-table.ts'
import { CALENDAR_FLAGS, readCalendar } from './read-calendar.ts'

export const putCalendar: Command = {
  name: 'calendars put',
  summary: 'write a calendar: all that it held is replaced, and jobs that name it follow',
  operands: [CALENDAR_OPERAND],
  flags: { ...CALENDAR_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  details: `  belfry calendars put holidays --day 2026-12-25 --day '2027-01-01=New Year' --weekend sat,sun
  belfry calendars put holidays --file holidays.ics --weekend sat,sun`,
  async run({ operands: [name = ''], flags, terminal, api }) {
    const body = await readCalendar(flags, () => terminal.input())
    const path = `/v1/calendars/${encodeURIComponent(name)}`
    showCalendar(terminal, await (await api()).ask<Calendar>('PUT', path, { body }))
  },
}
