import type { Run } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { ATTEMPT_COLUMNS, runFields } from './run-table.ts'

export const getRun: Command = {
  name: 'runs get',
  summary: 'one run with its attempts',
  operands: [{ name: 'run', about: "the run's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const run = await (await api()).get<Run>(`/v1/runs/${encodeURIComponent(id)}`)
    const attempts = run.attempts ?? []
    terminal.details(run, runFields(run), attempts.length > 0 ? terminal.table(ATTEMPT_COLUMNS, attempts) : '')
  },
}
