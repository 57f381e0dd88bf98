import type { Description } from '../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../command/command.ts'
import { given } from '../command/flags.ts'
import type { Column } from '../terminal/table.ts'
import { UsageError } from '../usage-error.ts'
import { SCHEDULE_FLAGS, scheduleFields } from './jobs/schedule-flags.ts'

type FireTime = Description['times'][number]

const DST_TEXT = { gap: 'the clocks skip its time', repeat: 'this time comes twice' }

export const TIME_COLUMNS: readonly Column<FireTime>[] = [
  { title: 'LOCAL', of: ({ local }) => local },
  { title: 'UTC', of: ({ utc }) => utc },
  { title: 'NOTE', of: ({ dst }) => (dst ? DST_TEXT[dst] : ''), spare: 1 },
]

export const preview: Command = {
  name: 'preview',
  summary: 'when a job would run, without making it',
  operands: [],
  flags: {
    ...SCHEDULE_FLAGS,
    from: { value: 'instant', about: 'times after this one, as if the job were created then (now)' },
    count: { value: 'n', about: 'how many times (5)' },
    job: { value: 'id', about: 'whose H it is' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  details: `  belfry preview --cron '30 2 * * *' --timezone Europe/Berlin --from 2027-03-26T00:00:00Z
  belfry preview --when 'last day of the month at 17:00' --count 12`,
  async run({ flags, terminal, api }) {
    const schedule = given(scheduleFields(flags))
    if (Object.keys(schedule).length === 0) throw new UsageError('give --cron, --every, --when, --at or --delay')
    const body = {
      ...schedule,
      ...given({ from: flags.text('from'), count: flags.number('count'), jobId: flags.text('job') }),
    }
    const shown = await (await api()).post<Description & { note?: string }>('/v1/schedules/preview', body)
    terminal.details(
      shown,
      [
        ['understood as', shown.understoodAs],
        ['expression', shown.expression],
        ['timezone', shown.timezone],
        ['note', shown.note],
      ],
      shown.times.length === 0 ? '' : terminal.table(TIME_COLUMNS, shown.times),
    )
  },
}
