import type { Backfill, BackfillPreview } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { timeText } from '../../terminal/time-text.ts'
import { UsageError } from '../../usage-error.ts'
import { findJobId, JOB_OPERAND } from '../jobs/find-job.ts'
import { backfillFields } from './backfill-table.ts'

export const createBackfill: Command = {
  name: 'backfill create',
  summary: 'run the times of a schedule that have passed',
  operands: [JOB_OPERAND],
  flags: {
    from: { value: 'instant', about: 'the first time that is run, as 2026-01-01T00:00:00Z' },
    to: { value: 'instant', about: 'the first time that is not run any more' },
    concurrency: { value: 'n', about: 'how many of its runs at a time (1)' },
    'confirm-count': { value: 'n', about: 'the count of a dry run: for more than 10,000 runs' },
    'dry-run': { about: 'only say what would be run' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  details: 'Look first with --dry-run. Times that have or had a run are left out.',
  async run({ operands: [name = ''], flags, terminal, api }) {
    const [from, to] = [flags.text('from'), flags.text('to')]
    if (from === undefined || to === undefined) throw new UsageError('say which times, by --from and --to')
    const [concurrency, confirmCount] = [flags.number('concurrency'), flags.number('confirm-count')]
    const body = { from, to, ...given({ concurrency, confirmCount }) }
    const node = await api()
    const path = `/v1/jobs/${await findJobId(node, name)}/backfill`
    if (flags.is('dry-run')) {
      const preview = await node.post<BackfillPreview>(path, { ...body, dryRun: true })
      terminal.details(preview, [
        ['would run', preview.count],
        ['left out', preview.leftOut],
        ['from', timeText(preview.from)],
        ['to', timeText(preview.to)],
        ['first', preview.times.first.map(timeText).join(', ')],
        ['last', preview.times.last.map(timeText).join(', ')],
        ...preview.notes.map((note) => ['note', note] as const),
      ])
      return
    }
    const made = await node.post<Backfill & { notes: string[] }>(path, body)
    terminal.details(made, [...backfillFields(made), ...made.notes.map((note) => ['note', note] as const)])
  },
}
