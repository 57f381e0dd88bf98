import type { Command } from './command.ts'
import { groupOf } from './find-command.ts'

/** All commands, a line each. */
export function overview(commands: readonly Command[]): string {
  return `belfry: runs work at the right time

${list(commands)}

\`belfry help <command>\` says more about one, as does --help behind it; \`belfry --version\` says which this is.

The node to talk to is BELFRY_URL (http://127.0.0.1:8080), with the key in BELFRY_API_KEY, or the admin key
that a node started here keeps in BELFRY_DATA_DIR (.belfry).`
}

export function groupHelp(commands: readonly Command[], group: string): string {
  return list(groupOf(commands, group))
}

export function helpOf(command: Command): string {
  const operands = command.operands.map(({ name, count }) => {
    if (count === 'optional') return ` [${name}]`
    return count === 'any' ? ` [${name} …]` : ` <${name}>`
  })
  const rows = [
    ...command.operands.map(({ name, about }): [string, string] => [name, about]),
    ...Object.entries(command.flags).map(([name, { value, about, multiple }]): [string, string] => [
      `--${name}${value ? ` <${value}>` : ''}`,
      multiple ? `${about}; may be given several times` : about,
    ]),
  ]
  const parts = [
    `belfry ${command.name}${operands.join('')}${rows.length > operands.length ? ' [flags]' : ''}`,
    command.summary,
  ]
  if (rows.length > 0) parts.push(aligned(rows))
  if (command.details) parts.push(command.details)
  return parts.join('\n\n')
}

const list = (commands: readonly Command[]): string => aligned(commands.map(({ name, summary }) => [name, summary]))

function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}`.trimEnd()).join('\n')
}
