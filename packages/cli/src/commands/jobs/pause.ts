import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const pauseJob: Command = {
  name: 'jobs pause',
  summary: 'no new runs of a job until it is resumed',
  operands: [JOB_OPERAND],
  flags: { reason: { value: 'text', about: 'why, for whoever looks later' }, ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const node = await api()
    const body = given({ reason: flags.text('reason') })
    const answer = await node.post<{ status: string }>(`/v1/jobs/${await findJobId(node, name)}/pause`, body)
    terminal.answer(answer, `${name} is ${answer.status}`)
  },
}
