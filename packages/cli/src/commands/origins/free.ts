import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { ORIGIN_OPERAND } from './limit.ts'

export const freeOrigin: Command = {
  name: 'origins free',
  summary: 'take the limits of an origin away',
  operands: [ORIGIN_OPERAND],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [name = ''], terminal, api }) {
    await (await api()).ask('DELETE', `/v1/origins/${encodeURIComponent(name)}`)
    terminal.answer({ origin: name, status: 'free' }, `${name} is not limited any more`)
  },
}
