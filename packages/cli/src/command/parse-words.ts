import { parseArgs } from 'node:util'
import { nearestName } from '@belfry/engine'
import { UsageError } from '../usage-error.ts'
import type { Command } from './command.ts'
import { Flags, type FlagTable } from './flags.ts'

export interface Parsed {
  operands: readonly string[]
  flags: Flags
  wantsHelp: boolean
}

/** Reads what stands after the command's name. Everything that it does not know is refused with the nearest name. */
export function parseWords(command: Command, words: readonly string[]): Parsed {
  const flags: FlagTable = { ...command.flags, help: { about: '' } }
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(flags).map(([name, { value }]) => [
        name,
        {
          type: value === undefined ? ('boolean' as const) : ('string' as const),
          ...(name === 'help' ? { short: 'h' } : {}),
        },
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const found = new Map<string, string[]>()
  const operands: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined
    if (flag === undefined) throw unknownFlag(command, token.rawName, Object.keys(flags))
    const earlier = found.get(token.name)
    if (earlier && flag.value !== undefined && !flag.multiple)
      throw new UsageError(`--${token.name} is given twice, but takes one value`)
    found.set(token.name, [...(earlier ?? []), readValue(token.name, flag.value, token)])
  }
  const wantsHelp = found.has('help')
  if (!wantsHelp) checkCount(command, operands)
  return { operands, flags: new Flags(found), wantsHelp }
}

function readValue(
  name: string,
  placeholder: string | undefined,
  { value, inlineValue }: { value?: string | undefined; inlineValue?: boolean | undefined },
): string {
  if (placeholder === undefined) {
    if (value === undefined) return ''
    throw new UsageError(`--${name} takes no value`)
  }
  if (value === undefined || (!inlineValue && value.startsWith('--'))) {
    throw new UsageError(
      `--${name} needs a value: --${name} <${placeholder}>${value ? ` (or --${name}=… if it begins with --)` : ''}`,
    )
  }
  return value
}

function unknownFlag(command: Command, rawName: string, names: readonly string[]): UsageError {
  const nearest = nearestName(rawName.replace(/^-+/, ''), names)
  const hint = nearest ? `; did you mean --${nearest}?` : `; \`belfry help ${command.name}\` shows what there is`
  return new UsageError(`\`belfry ${command.name}\` has no ${rawName}${hint}`)
}

function checkCount(command: Command, operands: readonly string[]): void {
  const needed = command.operands.filter(({ count }) => count === undefined)
  const missing = needed[operands.length]
  if (missing)
    throw new UsageError(`\`belfry ${command.name}\` needs ${missing.about}: belfry ${command.name} <${missing.name}>`)
  const isOpen = command.operands.some(({ count }) => count === 'any')
  const surplus = operands[command.operands.length]
  if (surplus !== undefined && !isOpen)
    throw new UsageError(
      `\`belfry ${command.name}\` does not take ${JSON.stringify(surplus)}; \`belfry help ${command.name}\` shows how it is used`,
    )
}
