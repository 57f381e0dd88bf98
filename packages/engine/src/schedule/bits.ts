/** Sets of small numbers as bits of one whole number: 0 to 30 in `Bits`, 0 to 59 in the two halves of `SixtyBits`. */

export type Bits = number

/** The first member that is at least `from`; -1 if there is none. */
export function firstFrom(bits: Bits, from: number): number {
  const rest = bits & (-1 << from)
  // Shifting by 31 and more wraps around.
  return from > 30 || rest === 0 ? -1 : 31 - Math.clz32(rest & -rest)
}

/** The last member that is at most `until`; -1 if there is none. */
export function lastUntil(bits: Bits, until: number): number {
  return until < 0 ? -1 : 31 - Math.clz32(until >= 30 ? bits : bits & ~(-2 << until))
}

export function hasBit(bits: Bits, value: number): boolean {
  return ((bits >>> value) & 1) === 1
}

export function countBits(bits: Bits): number {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++
  return count
}

const HALF = 30

export interface SixtyBits {
  /** 0 to 29. */
  low: Bits
  /** 30 to 59. */
  high: Bits
}

export function sixtyBits(values: Iterable<number>): SixtyBits {
  const bits = { low: 0, high: 0 }
  for (const value of values) {
    if (value < HALF) bits.low |= 1 << value
    else bits.high |= 1 << (value - HALF)
  }
  return bits
}

export function firstOfSixty({ low, high }: SixtyBits, from: number): number {
  if (from < HALF) {
    const found = firstFrom(low, from)
    if (found >= 0) return found
  }
  const found = from >= 2 * HALF ? -1 : firstFrom(high, Math.max(0, from - HALF))
  return found < 0 ? -1 : found + HALF
}

export function lastOfSixty({ low, high }: SixtyBits, until: number): number {
  if (until >= HALF) {
    const found = lastUntil(high, until - HALF)
    if (found >= 0) return found + HALF
  }
  return lastUntil(low, Math.min(until, HALF - 1))
}

export function hasOfSixty({ low, high }: SixtyBits, value: number): boolean {
  return value < HALF ? hasBit(low, value) : hasBit(high, value - HALF)
}

export function countOfSixty({ low, high }: SixtyBits): number {
  return countBits(low) + countBits(high)
}

/** Whether all members of the second set are in the first. */
export function containsSixty(all: SixtyBits, some: SixtyBits): boolean {
  return (some.low & ~all.low) === 0 && (some.high & ~all.high) === 0
}
