import type { Backfill } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'

export const cancelBackfill: Command = {
  name: 'backfill cancel',
  summary: 'no more runs of a backfill; those alive are asked to stop',
  operands: [{ name: 'backfill', about: "the backfill's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    const answer = await (await api()).post<Backfill>(`/v1/backfills/${encodeURIComponent(id)}/cancel`)
    const { created, total, running } = answer.counts
    const still = running === 0 ? '' : `; ${running} of its runs ${running === 1 ? 'is' : 'are'} still stopping`
    terminal.answer(answer, `backfill ${id} is ${answer.status}, with ${created} of ${total} times run${still}`)
  },
}
