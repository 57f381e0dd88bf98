import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'

export const revokeKey: Command = {
  name: 'keys revoke',
  summary: 'end a key: it opens nothing any more, within a second',
  operands: [{ name: 'id', about: "the key's id" }],
  flags: { ...TENANT_FLAG, ...JSON_FLAG },
  async run({ operands: [id = ''], terminal, api }) {
    await (await api()).ask('DELETE', `/v1/api-keys/${encodeURIComponent(id)}`)
    terminal.answer({ id, status: 'revoked' }, `${id} is revoked`)
  },
}
