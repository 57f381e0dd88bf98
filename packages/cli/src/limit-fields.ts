import { type Flags, type FlagTable, given } from './command/flags.ts'
import { UsageError } from './usage-error.ts'

/** What a queue or an origin lets through. */
export interface Limits {
  maxRunning: number | null
  rateLimit: { limit: number; period: string; burst: number } | null
}

export const LIMIT_FLAGS: FlagTable = {
  'max-running': { value: 'n', about: 'runs under way at a time; none takes the limit away' },
  rate: { value: 'n/period', about: 'runs that may start in a period: 100/1s, 50/PT1M; none takes the limit away' },
  burst: { value: 'n', about: 'with --rate: how many may start at once (as many as in a period)' },
}

/** What the flags say about limits, as the API takes it. */
export const limitFields = (flags: Flags) =>
  given({ maxRunning: wholeOrNone(flags, 'max-running'), rateLimit: rate(flags) })

/** The same, where it must be something. */
export function readLimits(flags: Flags) {
  const found = limitFields(flags)
  if (Object.keys(found).length > 0) return found
  throw new UsageError('there is nothing to limit: give --max-running or --rate')
}

export function wholeOrNone(flags: Flags, name: string): number | null | undefined {
  const text = flags.text(name)
  if (text === 'none') return null
  if (text === undefined || /^\d{1,15}$/.test(text)) return flags.number(name)
  throw new UsageError(`--${name} is ${JSON.stringify(text)}, but must be a whole number or none`)
}

function rate(flags: Flags) {
  const [text, burst] = [flags.text('rate'), flags.number('burst')]
  if (text === undefined && burst !== undefined) throw new UsageError('--burst belongs to --rate')
  if (text === undefined || text === 'none') return text === 'none' ? null : undefined
  const [, count, period] = /^(\d{1,15})\/(.+)$/.exec(text) ?? []
  if (count === undefined || period === undefined)
    throw new UsageError(
      `--rate is ${JSON.stringify(text)}, but must be a number and a period, such as 100/1s, or none`,
    )
  return given({ limit: Number(count), period, burst })
}

export const slotsText = ({ maxRunning }: Limits): string => (maxRunning === null ? '' : String(maxRunning))

export const rateText = ({ rateLimit }: Limits): string =>
  rateLimit === null ? '' : `${rateLimit.limit}/${rateLimit.period}, ${rateLimit.burst} at once`
