import { type Command, JSON_FLAG, TENANT_FLAG } from '../../command/command.ts'
import { given } from '../../command/flags.ts'
import { type MadeKey, showKey } from './made-key.ts'

export const createKey: Command = {
  name: 'keys create',
  summary: 'make an API key; it is shown once',
  operands: [],
  flags: {
    name: { value: 'text', about: 'what it is for' },
    scopes: { value: 'list', about: 'of read, write, worker, admin, with commas (read,write)' },
    'expires-at': { value: 'instant', about: 'when it ends: 2027-01-31T00:00:00Z (never)' },
    ...TENANT_FLAG,
    ...JSON_FLAG,
  },
  async run({ flags, terminal, api }) {
    const scopes = (flags.text('scopes') ?? 'read,write').split(',').map((scope) => scope.trim())
    const body = given({ name: flags.text('name') ?? 'cli', scopes, expiresAt: flags.text('expires-at') })
    showKey(terminal, await (await api()).post<MadeKey>('/v1/api-keys', body))
  },
}
