import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'

export const cancelRun: Command = {
  name: 'runs cancel',
  summary: 'one that waits is gone, one that runs is asked to stop',
  operands: [{ name: 'run', about: "the run's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const answer = await (await api()).post<{ status: string }>(`/v1/runs/${encodeURIComponent(id)}/cancel`)
    terminal.answer(answer, `run ${id} is ${answer.status}`)
  },
}
