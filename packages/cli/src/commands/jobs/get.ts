import type { Description, Job } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { TIME_COLUMNS } from '../preview.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'
import { jobFields } from './job-table.ts'

export const getJob: Command = {
  name: 'jobs get',
  summary: 'one job: what it is, when it runs next, how it went last',
  operands: [JOB_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    const node = await api()
    const job = await node.get<Job & Description>(`/v1/jobs/${await findJobId(node, name)}`)
    const times = job.times.length > 0 ? terminal.table(TIME_COLUMNS, job.times) : ''
    terminal.details(job, jobFields(job), times)
  },
}
