import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'

export const retryRun: Command = {
  name: 'runs retry',
  summary: 'open a failed or lost run again: same id, new attempts',
  operands: [{ name: 'run', about: "the run's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const answer = await (await api()).post<{ runId: string }>(`/v1/runs/${encodeURIComponent(id)}/retry`)
    terminal.answer(answer, `run ${answer.runId} is tried again`)
  },
}
