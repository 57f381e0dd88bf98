import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const resumeJob: Command = {
  name: 'jobs resume',
  summary: 'a paused job goes on, from now',
  operands: [JOB_OPERAND],
  flags: {
    missed: { value: 'what', about: 'times that fell into the pause: skip (the default) or catch_up' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const node = await api()
    const body = given({ missed: flags.text('missed') })
    const answer = await node.post<{ status: string }>(`/v1/jobs/${await findJobId(node, name)}/resume`, body)
    terminal.answer(answer, `${name} is ${answer.status}`)
  },
}
