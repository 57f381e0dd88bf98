import type { Backfill } from '../../api/shapes.ts'
import { type Command, LIST_FLAGS, limitOf } from '../../command/command.ts'
import { findJobId, JOB_OPERAND } from '../jobs/find-job.ts'
import { BACKFILL_COLUMNS } from './backfill-table.ts'

export const listBackfills: Command = {
  name: 'backfill list',
  summary: 'the backfills of a job, latest first',
  operands: [JOB_OPERAND],
  flags: LIST_FLAGS,
  async run({ operands: [name = ''], flags, terminal, api }) {
    const node = await api()
    const path = `/v1/jobs/${await findJobId(node, name)}/backfills`
    terminal.list(BACKFILL_COLUMNS, await node.list<Backfill>(path, {}, limitOf(flags)), 'it has none')
  },
}
