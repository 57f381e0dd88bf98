import type { Forecast, ForecastPart } from '../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../command/command.ts'
import { given } from '../command/flags.ts'
import type { Column } from '../terminal/table.ts'
import { timeText } from '../terminal/time-text.ts'

const MINUTES: readonly Column<Forecast['busiest'][number]>[] = [
  { title: 'BUSIEST MINUTES', of: ({ at }) => timeText(at) },
  { title: 'RUNS', of: ({ runs }) => String(runs) },
  { title: 'WITHOUT JITTER', of: ({ withoutJitter }) => String(withoutJitter) },
]

const partColumns = (title: string): readonly Column<ForecastPart>[] => [
  { title, of: ({ name }) => name, atLeast: 12 },
  { title: 'RUNS', of: ({ total }) => String(total) },
  { title: 'MOST IN A MINUTE', of: ({ busiest }) => (busiest ? String(busiest.runs) : '') },
  { title: 'AT', of: ({ busiest }) => timeText(busiest?.at), spare: 1 },
]

export const forecast: Command = {
  name: 'forecast',
  summary: 'how many runs are expected, and when: the coming 24 hours',
  operands: [],
  flags: {
    from: { value: 'instant', about: 'from here on (now)' },
    to: { value: 'instant', about: 'until then (24 hours later), within the coming 7 days' },
    of: { value: 'whose', about: 'tenant, or with the admin key installation' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ flags, terminal, api }) {
    const query = given({ from: flags.text('from'), to: flags.text('to'), of: flags.text('of') })
    const found = await (await api()).get<Forecast>('/v1/forecast', query)
    const tables = [
      found.busiest.length > 0 ? terminal.table(MINUTES, found.busiest) : '',
      found.queues.length > 0 ? terminal.table(partColumns('QUEUE'), found.queues) : '',
      found.origins.length > 0 ? terminal.table(partColumns('ORIGIN'), found.origins) : '',
    ]
    terminal.details(
      found,
      [
        ['from', timeText(found.from)],
        ['to', timeText(found.to)],
        ['jobs', found.timers],
        ['runs', found.isComplete ? found.total : `about ${found.total}`],
        ['as of', timeText(found.asOf)],
      ],
      ...tables,
    )
  },
}
