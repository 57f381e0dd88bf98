import { type Flags, type FlagTable, given } from '../../command/flags.ts'
import { UsageError } from '../../usage-error.ts'

export const PAUSE_FLAGS: FlagTable = {
  all: { about: 'all that the tenant has' },
  key: { value: 'name', about: 'runs of jobs that name this key in concurrency or rateLimit' },
  origin: { value: 'url', about: 'calls to this scheme, host and port: https://api.example.com' },
}

/** What is meant, as the API takes it. */
export function readPaused(flags: Flags): { tenant?: true; key?: string; origin?: string } {
  const found = given({
    tenant: flags.is('all') ? (true as const) : undefined,
    key: flags.text('key'),
    origin: flags.text('origin'),
  })
  if (Object.keys(found).length === 1) return found
  throw new UsageError('say what: exactly one of --all, --key and --origin')
}
