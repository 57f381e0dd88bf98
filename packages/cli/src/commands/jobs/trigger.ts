import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { findJobId, JOB_OPERAND } from './find-job.ts'

export const triggerJob: Command = {
  name: 'jobs trigger',
  summary: 'one run of a job now, beside its schedule',
  operands: [JOB_OPERAND],
  flags: {
    payload: { value: 'json', about: "for this run alone, in place of its job's" },
    overlap: { value: 'policy', about: 'for this run alone, while another one is alive: allow, skip, buffer_one, …' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ operands: [name = ''], flags, terminal, api }) {
    const body = given({ payload: flags.json('payload'), overlap: flags.text('overlap') })
    const node = await api()
    const answer = await node.post<{ runId: string; status: string }>(
      `/v1/jobs/${await findJobId(node, name)}/trigger`,
      body,
    )
    terminal.answer(
      answer,
      `run ${answer.runId}${answer.status === 'blocked' ? ', once the one that is alive has ended' : ''}`,
    )
  },
}
