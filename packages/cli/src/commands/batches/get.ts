import type { Batch } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import type { Field } from '../../terminal/details.ts'
import { timeText } from '../../terminal/time-text.ts'

export const getBatch: Command = {
  name: 'batches get',
  summary: 'how far a batch of jobs is, and how they ended',
  operands: [{ name: 'batch', about: "the batch's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const found = await (await api()).get<Batch>(`/v1/batches/${encodeURIComponent(id)}`)
    terminal.details(found, fieldsOf(found))
  },
}

function fieldsOf(batch: Batch): readonly Field[] {
  return [
    ['batch', batch.batchId],
    ['name', batch.name],
    ['done', `${batch.total - batch.open} of ${batch.total} (${Math.floor(batch.progress * 100)} %)`],
    ['succeeded', batch.succeeded],
    ['failed', batch.failed],
    ['canceled', batch.canceled],
    ['skipped', batch.skipped],
    ['open', batch.open],
    ['at its end', batch.onFinishJobId],
    ['by', batch.createdBy],
    ['created', timeText(batch.createdAt)],
    ['finished', timeText(batch.finishedAt)],
  ]
}
