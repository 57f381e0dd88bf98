import { readFile } from 'node:fs/promises'
import { Api } from './api/api.ts'
import { readConnection } from './api/connection.ts'
import { findCommand, groupOf } from './command/find-command.ts'
import { groupHelp, helpOf, overview } from './command/help.ts'
import { parseWords } from './command/parse-words.ts'
import { COMMANDS } from './commands.ts'
import type { Environment } from './start/start-options.ts'
import { type Streams, Terminal } from './terminal/terminal.ts'

/** Does what the words say. */
export async function runCommand(words: readonly string[], environment: Environment, streams: Streams): Promise<void> {
  const typed = words.length === 0 ? ['start'] : words
  if (isHelp(typed[0])) return streams.out(helpFor(typed.slice(1)))
  if (typed.length === 2 && isHelp(typed[1]) && groupOf(COMMANDS, typed[0]).length > 0)
    return streams.out(helpFor(typed.slice(0, 1)))
  if (typed.length === 1 && typed[0] === '--version') return streams.out(await version())
  const { command, rest } = findCommand(COMMANDS, typed)
  const { operands, flags, wantsHelp } = parseWords(command, rest)
  if (wantsHelp) return streams.out(helpOf(command))
  const terminal = new Terminal(streams, { json: flags.is('json') })
  const tenant = flags.text('tenant') ?? (environment.BELFRY_TENANT || undefined)
  const api = async () => new Api(await readConnection(environment), tenant)
  await command.run({ operands, flags, environment, terminal, api })
}

function helpFor(words: readonly string[]): string {
  if (words.length === 0) return overview(COMMANDS)
  const [first = ''] = words
  if (words.length === 1 && groupOf(COMMANDS, first).length > 0) return groupHelp(COMMANDS, first)
  return helpOf(findCommand(COMMANDS, words).command)
}

const isHelp = (word: string | undefined): boolean => word === 'help' || word === '--help' || word === '-h'

/** The package lies beside the sources, and beside what is built of them. */
async function version(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
