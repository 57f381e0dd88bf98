import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const resumeJob: Command = {
  name: 'jobs resume',
  summary: 'a paused job goes on, from now',
  operands: [JOB_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    const node = await api()
    const answer = await node.post<{ status: string }>(`/v1/jobs/${await findJobId(node, name)}/resume`)
    terminal.answer(answer, `${name} is ${answer.status}`)
  },
}
