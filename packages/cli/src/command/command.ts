import type { Api } from '../api/api.ts'
import type { Environment } from '../start/start-options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Flags, FlagTable } from './flags.ts'

export interface Operand {
  name: string
  about: string
  /** One unless said otherwise. */
  count?: 'optional' | 'any'
}

/** One thing that `belfry` can do. The table of them is in commands.ts; help and parsing come from here. */
export interface Command {
  /** As it is typed: `jobs create`. */
  name: string
  summary: string
  operands: readonly Operand[]
  flags: FlagTable
  /** More than a line about it: examples, and what surprises. */
  details?: string
  run(call: Call): Promise<void>
}

export interface Call {
  operands: readonly string[]
  flags: Flags
  environment: Environment
  terminal: Terminal
  /** Looked up when first asked for: not every command needs a node. */
  api(): Promise<Api>
}

export const JSON_FLAG: FlagTable = { json: { about: 'JSON instead of a table: for programs' } }

export const TENANT_FLAG: FlagTable = {
  tenant: { value: 'name', about: 'act for this tenant; needs the admin key (BELFRY_TENANT)' },
}

export const LIST_FLAGS: FlagTable = {
  limit: { value: 'n', about: 'how many at most (50)' },
  all: { about: 'all of them' },
  ...TENANT_FLAG,
  ...JSON_FLAG,
}

const USUAL_LIMIT = 50

export function limitOf(flags: Flags): number {
  return flags.is('all') ? Number.MAX_SAFE_INTEGER : Math.max(1, flags.number('limit') ?? USUAL_LIMIT)
}
