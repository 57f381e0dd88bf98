import type { Pause } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { PAUSE_FLAGS, readPaused } from './pause-flags.ts'
import { pausedText } from './paused-text.ts'

export const pause: Command = {
  name: 'pause',
  summary: 'start nothing of a tenant, a key or an origin until it is resumed',
  operands: [],
  flags: {
    ...PAUSE_FLAGS,
    reason: { value: 'text', about: 'why, for whoever looks later' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  details: `  belfry pause --origin https://api.example.com --reason 'they are moving'
  belfry pause --key customer-42
  belfry pause --all --tenant acme`,
  async run({ flags, terminal, api }) {
    const body = { ...readPaused(flags), ...given({ reason: flags.text('reason') }) }
    const made = await (await api()).post<Pause>('/v1/pauses', body)
    terminal.answer(made, `${pausedText(made)} is paused`)
  },
}
