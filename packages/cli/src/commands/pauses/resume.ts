import type { Pause } from '../../api/shapes.ts'
import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { UsageError } from '../../usage-error.ts'
import { PAUSE_FLAGS, readPaused } from './pause-flags.ts'
import { pausedText } from './paused-text.ts'

export const resume: Command = {
  name: 'resume',
  summary: 'go on with a tenant, a key or an origin that is paused',
  operands: [],
  flags: { ...PAUSE_FLAGS, ...TENANT_FLAG, ...JSON_FLAG },
  async run({ flags, terminal, api }) {
    const { tenant, key, origin } = readPaused(flags)
    const node = await api()
    const { items } = await node.get<{ items: Pause[] }>('/v1/pauses')
    const kind = tenant ? 'tenant' : key === undefined ? 'origin' : 'key'
    const name = key ?? (origin === undefined ? null : originOf(origin))
    const found = items.find((pause) => pause.kind === kind && pause.name === name)
    if (found === undefined) {
      terminal.answer({ status: 'active' }, `${pausedText({ kind, name })} is not paused`)
      return
    }
    await node.ask('DELETE', `/v1/pauses/${found.id}`)
    terminal.answer({ ...found, status: 'active' }, `${pausedText(found)} goes on`)
  },
}

function originOf(text: string): string {
  if (URL.canParse(text)) return new URL(text).origin
  throw new UsageError(`--origin is ${JSON.stringify(text)}, but must be such as https://api.example.com`)
}
