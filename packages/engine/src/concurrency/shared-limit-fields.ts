import { type Complaints, isRecord, readClockMs, readInteger, readRecord } from '../input/read-fields.ts'
import { formatDuration } from '../schedule/duration.ts'
import { mostBurst, type Rate } from './gcra.ts'
import type { Limits } from './shared-limits.sql.ts'

/** How many runs may start: `limit` in each `period`, evenly, and up to `burst` (as many as `limit`) at once. */
export interface RateInput {
  limit: number
  period: string
  burst?: number
}

/** What somebody says about the limits of a queue or an origin. Null: none. Left out: as it was. */
export interface LimitsInput {
  maxRunning?: number | null
  rateLimit?: RateInput | null
}

/** How limits are shown. */
export interface LimitsView {
  /** How many of its runs may be under way at a time. */
  maxRunning: number | null
  rateLimit: Required<RateInput> | null
}

const MOST = 1_000_000
const SHORTEST_MS = 1_000
const LONGEST_MS = 31 * 86_400_000

/** Reads limits over what they were; undefined: there is something to complain about. */
export function readLimits(complaints: Complaints, input: LimitsInput, before: Limits): Limits | undefined {
  const { maxRunning, rateLimit } = input
  const slots =
    maxRunning === undefined || maxRunning === null
      ? maxRunning
      : maxRunning === 0
        ? complaints.add('maxRunning', 'must be at least 1: to start nothing, pause it; for no limit, say null')
        : readInteger(complaints, 'maxRunning', maxRunning, 1, MOST)
  const rate = rateLimit === undefined || rateLimit === null ? rateLimit : readRate(complaints, rateLimit)
  if (complaints.list.length > 0) return undefined
  return {
    maxRunning: slots === undefined ? before.maxRunning : slots,
    rate: rate === undefined ? before.rate : rate,
  }
}

function readRate(complaints: Complaints, value: unknown): Rate | undefined {
  const given = readRecord(complaints, 'rateLimit', value, ['limit', 'period', 'burst'])
  if (!isRecord(given)) return undefined
  const limit = readInteger(complaints, 'rateLimit.limit', given.limit, 1, MOST)
  const periodMs = readClockMs(complaints, 'rateLimit.period', given.period, SHORTEST_MS, LONGEST_MS)
  const burst = given.burst === undefined ? limit : readInteger(complaints, 'rateLimit.burst', given.burst, 1, MOST)
  if (limit === undefined || periodMs === undefined || burst === undefined) return undefined
  const most = mostBurst({ limit, periodMs })
  if (burst <= most) return { limit, periodMs, burst }
  return complaints.add(
    'rateLimit.burst',
    `must be at most ${most}: so many are what the rate allows in 366 days, not ${burst}`,
  )
}

export const NO_LIMITS: Limits = { maxRunning: null, rate: null }

export const isLimited = ({ maxRunning, rate }: Limits): boolean => maxRunning !== null || rate !== null

export const limitsView = ({ maxRunning, rate }: Limits): LimitsView => ({
  maxRunning,
  rateLimit: rate && {
    limit: rate.limit,
    period: formatDuration({ kind: 'clock', ms: rate.periodMs }),
    burst: rate.burst,
  },
})
