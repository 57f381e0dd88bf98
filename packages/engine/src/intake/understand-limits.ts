import { LONGEST_BURST_MS, mostBurst } from '../concurrency/gcra.ts'
import {
  type Complaints,
  readChoice,
  readClockMs,
  readInteger,
  readRecord,
  readText,
  setGiven,
} from '../input/read-fields.ts'
import type { ConcurrencyLimit, Definition, RateLimit } from '../job/definition.ts'

export const LIMIT_FIELDS = ['concurrency', 'rateLimit'] as const

const ON_LIMIT = ['wait', 'skip', 'cancel_oldest'] as const
const MAX_LIMIT = 1_000_000
const MAX_KEY = 256

/** Adds how many of the job's runs may be performed at a time, and how many may start in a period. */
export function addLimits(complaints: Complaints, definition: Definition, job: Record<string, unknown>): void {
  const { concurrency, rateLimit } = job
  setGiven(definition, 'concurrency', concurrency, (value) => understandConcurrency(complaints, value))
  if (rateLimit === undefined) return
  const understood = understandRate(complaints, rateLimit)
  if (understood === undefined) return
  if (concurrency !== undefined && understood.key !== undefined && understood.key !== definition.concurrency?.key) {
    const given = definition.concurrency?.key
    complaints.add(
      'rateLimit.key',
      given === undefined
        ? 'must be left out, or be that of concurrency too: a job has one key'
        : 'must be that of concurrency, or be left out: a job has one key',
      given,
    )
    return
  }
  definition.rateLimit = understood
}

function understandConcurrency(complaints: Complaints, value: unknown): ConcurrencyLimit | undefined {
  const given = readRecord(complaints, 'concurrency', value, ['limit', 'key', 'onLimit'])
  if (given === undefined) return undefined
  const limit = readInteger(complaints, 'concurrency.limit', given.limit, 1, MAX_LIMIT)
  const key = readKey(complaints, 'concurrency.key', given.key)
  const onLimit =
    given.onLimit === undefined ? 'wait' : readChoice(complaints, 'concurrency.onLimit', given.onLimit, ON_LIMIT)
  if (limit === undefined || key === null) return undefined
  return {
    ...(key === undefined ? {} : { key }),
    limit,
    ...(onLimit === undefined || onLimit === 'wait' ? {} : { onLimit }),
  }
}

function understandRate(complaints: Complaints, value: unknown): RateLimit | undefined {
  if (typeof value === 'object' && value !== null && 'onLimit' in value) {
    return complaints.add(
      'rateLimit.onLimit',
      'has no meaning here: what is over a rate waits; it is a field of concurrency',
    )
  }
  const given = readRecord(complaints, 'rateLimit', value, ['limit', 'period', 'burst', 'cost', 'key'])
  if (given === undefined) return undefined
  const limit = readInteger(complaints, 'rateLimit.limit', given.limit, 1, MAX_LIMIT)
  const periodMs = readClockMs(complaints, 'rateLimit.period', given.period, 1, LONGEST_BURST_MS)
  const burst =
    given.burst === undefined ? limit : readInteger(complaints, 'rateLimit.burst', given.burst, 1, MAX_LIMIT)
  const cost = given.cost === undefined ? 1 : readInteger(complaints, 'rateLimit.cost', given.cost, 1, MAX_LIMIT)
  const key = readKey(complaints, 'rateLimit.key', given.key)
  if (limit === undefined || periodMs === undefined || burst === undefined || cost === undefined || key === null) {
    return undefined
  }
  const most = mostBurst({ limit, periodMs })
  if (burst > most) {
    return complaints.add(
      'rateLimit.burst',
      `must be at most ${most}: so many are what the rate allows in 366 days, not ${burst}`,
    )
  }
  if (cost > burst) {
    return complaints.add(
      'rateLimit.cost',
      `must be at most the burst of ${burst}, or no run would ever start, not ${cost}`,
    )
  }
  return {
    ...(key === undefined ? {} : { key }),
    limit,
    periodMs,
    ...(burst === limit ? {} : { burst }),
    ...(cost === 1 ? {} : { cost }),
  }
}

/** Null: there is one, and it cannot be understood. */
function readKey(complaints: Complaints, path: string, value: unknown): string | null | undefined {
  return value === undefined ? undefined : (readText(complaints, path, value, MAX_KEY) ?? null)
}
