import type { Job } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import { JOB_COLUMNS } from './job-table.ts'

export const listJobs: Command = {
  name: 'jobs list',
  summary: 'the jobs, newest first',
  operands: [],
  flags: {
    status: { value: 'status', about: 'active, paused, completed, canceled, succeeded or failed' },
    queue: { value: 'name', about: 'of this queue' },
    name: { value: 'text', about: 'of this name' },
    ...LIST_FLAGS,
  },
  async run({ flags, terminal, api }) {
    const query = { status: flags.text('status'), queue: flags.text('queue'), name: flags.text('name') }
    const jobs = await (await api()).list<Job>('/v1/jobs', query, limitOf(flags))
    terminal.list(JOB_COLUMNS, jobs, 'there are no such jobs')
  },
}
