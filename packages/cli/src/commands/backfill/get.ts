import type { Backfill } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { backfillFields } from './backfill-table.ts'

export const getBackfill: Command = {
  name: 'backfill get',
  summary: 'how far a backfill is, and how its runs ended',
  operands: [{ name: 'backfill', about: "the backfill's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const found = await (await api()).get<Backfill>(`/v1/backfills/${encodeURIComponent(id)}`)
    terminal.details(found, backfillFields(found))
  },
}
