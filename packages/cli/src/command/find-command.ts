import { nearestName } from '@belfry/engine'
import { UsageError } from '../usage-error.ts'
import type { Command } from './command.ts'

/** The command that the words begin with, and the words after it. */
export function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): { command: Command; rest: readonly string[] } {
  const found = commands
    .filter(({ name }) => name.split(' ').every((word, i) => words[i] === word))
    .sort((a, b) => b.name.length - a.name.length)[0]
  if (found) return { command: found, rest: words.slice(found.name.split(' ').length) }
  throw unknownCommand(commands, words)
}

/** The commands of a group: `jobs` stands for `jobs create` and the others. */
export function groupOf(commands: readonly Command[], word: string | undefined): readonly Command[] {
  return commands.filter(({ name }) => name.startsWith(`${word} `))
}

function unknownCommand(commands: readonly Command[], words: readonly string[]): UsageError {
  const [first = words[0] ?? '', second] = words.filter((word) => !word.startsWith('-'))
  const group = groupOf(commands, first)
  if (group.length > 0) {
    const verbs = group.map(({ name }) => name.slice(first.length + 1))
    if (second === undefined) return new UsageError(`\`belfry ${first}\` needs to know what to do: ${verbs.join(', ')}`)
    return refusal(`${first} ${second}`, nearestName(second, verbs), `${first} has ${verbs.join(', ')}`, first)
  }
  const names = [...new Set(commands.map(({ name }) => name.split(' ')[0] as string))]
  return refusal(first, nearestName(first, names), `there are ${names.join(', ')} and help`)
}

function refusal(typed: string, nearest: string | undefined, known: string, group?: string): UsageError {
  const hint = nearest ? `did you mean \`belfry ${group ? `${group} ` : ''}${nearest}\`?` : known
  return new UsageError(`there is no \`belfry ${typed}\`; ${hint}`)
}
