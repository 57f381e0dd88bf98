import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { type MadeKey, showKey } from './made-key.ts'

export const rotateKey: Command = {
  name: 'keys rotate',
  summary: 'make a new key in place of one, which stays valid for a while',
  operands: [{ name: 'id', about: "the key's id" }],
  flags: {
    overlap: { value: 'duration', about: 'how long the old one stays valid: 24h, 0s' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ operands: [id = ''], flags, terminal, api }) {
    const body = given({ overlap: flags.text('overlap') })
    showKey(terminal, await (await api()).post<MadeKey>(`/v1/api-keys/${encodeURIComponent(id)}/rotate`, body))
  },
}
