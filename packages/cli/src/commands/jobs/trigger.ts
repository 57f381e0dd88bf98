import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const triggerJob: Command = {
  name: 'jobs trigger',
  summary: 'one run of a job now, beside its schedule',
  operands: [JOB_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    const node = await api()
    const answer = await node.post<{ runId: string }>(`/v1/jobs/${await findJobId(node, name)}/trigger`)
    terminal.answer(answer, `run ${answer.runId}`)
  },
}
