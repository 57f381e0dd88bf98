import { randomBytes } from 'node:crypto'

/** Chance, taken from one place so that tests and the simulator can replay it. */
export interface Random {
  /** In [0, 1). */
  float(): number
  /** `count` random bytes. */
  bytes(count: number): Buffer
}

export const systemRandom: Random = {
  float: () => Math.random(),
  bytes: (count) => randomBytes(count),
}

/** A generator that gives the same sequence for the same seed (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const float = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return { float, bytes: (count) => Buffer.from(Array.from({ length: count }, () => Math.floor(float() * 256))) }
}
