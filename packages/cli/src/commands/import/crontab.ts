import type { Command } from '../../command/command.ts'
import { readCrontab } from '../../import/crontab.ts'
import { FILE_OPERAND, IMPORT_FLAGS, runImport } from '../../import/run-import.ts'

export const importCrontab: Command = {
  name: 'import crontab',
  summary: 'take over a crontab: says what becomes of it, and with --apply does it',
  operands: [FILE_OPERAND],
  flags: { system: { about: 'with a column for the user, like /etc/crontab' }, ...IMPORT_FLAGS },
  details: `  crontab -l | belfry import crontab - --timezone Europe/Berlin
  belfry import crontab /etc/crontab --system --apply`,
  run: (call) =>
    runImport(call, {
      usualQueue: 'crontab',
      read: (text, options) => readCrontab(text, { ...options, format: call.flags.is('system') ? 'system' : 'user' }),
    }),
}
