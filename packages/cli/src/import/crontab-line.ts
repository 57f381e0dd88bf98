export type CrontabLine =
  | { kind: 'nothing' }
  | { kind: 'variable'; name: string; value: string }
  | { kind: 'entry'; cron: string; user?: string; command: string; stdin?: string }
  | { kind: 'bad'; reason: string }

const VARIABLE = /^("[^"]*"|'[^']*'|[^\s="'][^\s=]*)\s*=\s*(.*)$/
const NICKNAME = /^(@\S+)(?:\s+(.*))?$/
const FIVE_FIELDS = /^(\S+\s+\S+\s+\S+\s+\S+\s+\S+)(?:\s+(.*))?$/
const USER = /^(\S+)(?:\s+(.*))?$/

/** Reads a line as cron does. A crontab of the system has a column for the user. */
export function readCrontabLine(line: string, format: 'user' | 'system'): CrontabLine {
  const text = line.trim()
  if (text === '' || text.startsWith('#')) return { kind: 'nothing' }
  const variable = VARIABLE.exec(text)
  if (variable !== null)
    return { kind: 'variable', name: unquoted(variable[1] as string), value: unquoted(variable[2] as string) }
  const [, times, rest] = (text.startsWith('@') ? NICKNAME : FIVE_FIELDS).exec(text) ?? []
  if (times === undefined)
    return { kind: 'bad', reason: 'it has fewer than five fields, and is no variable (NAME=value) either' }
  const cron = times.replaceAll(/\s+/g, ' ')
  if (format === 'user') return withCommand({ cron }, rest, 'after its times')
  const [, user, command] = USER.exec(rest ?? '') ?? []
  if (user === undefined) return { kind: 'bad', reason: 'it has no user and no command after its times' }
  return withCommand({ cron, user }, command, `after the user ${user}`)
}

function withCommand(entry: { cron: string; user?: string }, text: string | undefined, where: string): CrontabLine {
  if (text === undefined) return { kind: 'bad', reason: `it has no command ${where}` }
  return { kind: 'entry', ...entry, ...splitCommand(text) }
}

/** The first bare % ends the command; what follows is its input, where each further one begins a line. */
function splitCommand(text: string): { command: string; stdin?: string } {
  const [command = '', ...input] = text.split(/(?<!\\)%/).map((part) => part.replaceAll('\\%', '%'))
  return input.length === 0 ? { command } : { command: command.trimEnd(), stdin: `${input.join('\n')}\n` }
}

function unquoted(text: string): string {
  const quote = text[0]
  return text.length > 1 && (quote === '"' || quote === "'") && text.endsWith(quote) ? text.slice(1, -1) : text
}
