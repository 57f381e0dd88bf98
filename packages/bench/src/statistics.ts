/** The middle value; of an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const upper = sorted[Math.floor(middle)] ?? Number.NaN
  return Number.isInteger(middle) ? (upper + (sorted[middle - 1] ?? Number.NaN)) / 2 : upper
}

/** The smallest value that at least `share` of all values do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
}

/** What a subject came to in each round; some rounds have several values. */
export type Rounds = ReadonlyMap<number, readonly number[]>

/** How two subjects compare that took turns. */
export interface Ratio {
  /** Of the ratios of all pairs: a machine that is slower for a minute is so for both sides of a pair. */
  median: number
  least: number
  most: number
  pairs: number
}

/** Compares round with round. Rounds that only one side has, and those without a number to divide by, are no pairs. */
export function ratioOf(above: Rounds, below: Rounds): Ratio | null {
  const ratios = [...above].flatMap(([round, values]) => {
    const ratio = median(values) / median(below.get(round) ?? [])
    return Number.isFinite(ratio) ? [ratio] : []
  })
  if (ratios.length === 0) return null
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios), pairs: ratios.length }
}
