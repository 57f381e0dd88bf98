import { zoneOf } from '@belfry/engine'
import type { Api } from '../api/api.ts'
import type { Explanation, Job } from '../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../command/command.ts'
import type { Column } from '../terminal/table.ts'
import { durationText, timeText } from '../terminal/time-text.ts'
import { UsageError } from '../usage-error.ts'
import { findJobId, JOB_OPERAND } from './jobs/find-job.ts'
import { ATTEMPT_COLUMNS } from './runs/run-table.ts'

const COLUMNS: readonly Column<Explanation>[] = [
  { title: 'TIME', of: ({ nominalAt, at }) => timeText(nominalAt ?? at) },
  { title: 'VERDICT', of: ({ verdict }) => verdict },
  { title: 'REASON', of: ({ reason }) => reason ?? '' },
  { title: 'WHY', of: ({ sentence }) => sentence, atLeast: 20 },
]

export const explain: Command = {
  name: 'explain',
  summary: 'why a job ran, did not run or will run at an instant',
  operands: [
    JOB_OPERAND,
    { name: 'at', about: 'the instant; --from and --to ask about a range instead', count: 'optional' },
  ],
  flags: {
    from: { value: 'instant', about: 'every time of the job from here on' },
    to: { value: 'instant', about: 'and before this' },
    ...LIST_FLAGS,
  },
  details: `An instant without an offset is on the clock of the job's time zone (UTC, if it has none); one without seconds means the time
of the job in that minute. A time that the clocks skip or repeat needs its offset to be exact: 2026-10-25T02:30+01:00.

  belfry explain digest 2026-12-01T09:00
  belfry explain digest 2026-12-01T09:00:00Z
  belfry explain digest --from 2026-12-01T00:00 --to 2026-12-02T00:00`,
  async run({ operands: [name = '', at], flags, terminal, api }) {
    const [from, to] = [flags.text('from'), flags.text('to')]
    if ((at === undefined) === (from === undefined && to === undefined))
      throw new UsageError('give an instant, as in `belfry explain digest 2026-12-01T09:00`, or --from and --to')
    if (at === undefined && (from === undefined || to === undefined))
      throw new UsageError(`--${from === undefined ? 'from' : 'to'} is missing: a range has both ends`)
    const node = await api()
    const jobId = await findJobId(node, name)
    const path = `/v1/jobs/${jobId}/explain`
    const zone = [at, from, to].some((text) => text !== undefined && LOCAL.test(text))
      ? await zoneOfJob(node, jobId)
      : UTC
    if (at === undefined) {
      const range = { from: instantOf(from ?? '', zone), to: instantOf(to ?? '', zone) }
      const found = await node.list<Explanation>(path, range, limitOf(flags))
      terminal.list(COLUMNS, found, 'the job has no time in that range')
      return
    }
    const found = await node.get<Explanation>(path, { at: instantOf(at, zone) })
    const attempts = found.run?.attempts ?? []
    terminal.details(
      found,
      [
        ['verdict', found.reason ? `${found.verdict}: ${found.reason}` : found.verdict],
        ['why', found.sentence],
        ['time', timeText(found.nominalAt)],
        ['local', `${found.local} ${found.timezone}`],
        ['due', timeText(found.dueAt)],
        ['run', found.run?.id],
        ['late by', durationText(found.run?.latenessMs)],
        ['by', found.by && `${found.by.actor}, ${found.by.action} at ${timeText(found.by.at)}`],
        ['before', timeText(found.nearest?.before)],
        ['after', timeText(found.nearest?.after)],
        ['version', found.version],
      ],
      attempts.length > 0 ? terminal.table(ATTEMPT_COLUMNS, attempts) : '',
    )
  },
}

const LOCAL = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,3})?)?$/
const WITHOUT_SECONDS = /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)([Zz]|[+-]\d\d:\d\d)$/

type Zone = ReturnType<typeof zoneOf>

const UTC = zoneOf('UTC')

async function zoneOfJob(api: Api, jobId: string): Promise<Zone> {
  const { schedule }: Job = await api.get(`/v1/jobs/${jobId}`)
  return zoneOf(schedule?.timezone ?? 'UTC')
}

/** What the node understands; what is no instant at all it refuses in its own words. */
function instantOf(text: string, zone: Zone): string {
  const local = LOCAL.test(text) ? Date.parse(`${text.replace(' ', 'T')}Z`) : Number.NaN
  if (!Number.isNaN(local)) return new Date(zone.instantOf(local)).toISOString()
  return text.replace(WITHOUT_SECONDS, '$1:00$2')
}
