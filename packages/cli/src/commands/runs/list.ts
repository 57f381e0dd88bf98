import type { RunSummary } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import { findJobId } from '../jobs/find-job.ts'
import { RUN_COLUMNS } from './run-table.ts'

export const listRuns: Command = {
  name: 'runs list',
  summary: 'the runs, newest first',
  operands: [],
  flags: {
    job: { value: 'job', about: 'of this job, by id or name' },
    status: { value: 'status', about: 'waiting, ready, running, succeeded, failed, canceled, lost or skipped' },
    queue: { value: 'name', about: 'of this queue' },
    'failure-class': { value: 'class', about: 'timeout, network, http_4xx, http_5xx, …' },
    ...LIST_FLAGS,
  },
  async run({ flags, terminal, api }) {
    const node = await api()
    const job = flags.text('job')
    const query = {
      job: job === undefined ? undefined : await findJobId(node, job),
      status: flags.text('status'),
      queue: flags.text('queue'),
      failureClass: flags.text('failure-class'),
    }
    const runs = await node.list<RunSummary>('/v1/runs', query, limitOf(flags))
    terminal.list(RUN_COLUMNS, runs, 'there are no such runs')
  },
}
