const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const

/** A length of time in the largest unit of which it is a whole number: 366 days, 90 seconds, 250 ms. */
function periodInWords(ms: number): string {
  const [unit, length] = UNITS.find(([, length]) => ms >= length && ms % length === 0) ?? ['ms', 1]
  const count = ms / length
  return `${count} ${unit}${unit === 'ms' || count === 1 ? '' : 's'}`
}

/** As people say it: 1 per second, 20 in 5 minutes. */
export function rateInWords({ limit, periodMs }: { limit: number; periodMs: number }): string {
  const period = periodInWords(periodMs)
  return period.startsWith('1 ') && period !== '1 ms' ? `${limit} per ${period.slice(2)}` : `${limit} in ${period}`
}
