import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const cancelJob: Command = {
  name: 'jobs cancel',
  summary: 'no more runs of a job; those that run are asked to stop',
  operands: [JOB_OPERAND],
  flags: {
    running: { value: 'what', about: 'finish lets those that run finish (cancel)' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const node = await api()
    const body = given({ running: flags.text('running') })
    const answer = await node.post<{ status: string }>(`/v1/jobs/${await findJobId(node, name)}/cancel`, body)
    terminal.answer(answer, `${name} is ${answer.status}`)
  },
}
