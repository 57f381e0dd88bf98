import { parseArgs } from 'node:util'

export interface ChaosOptions {
  minutes: number
  seed: number
}

export const USAGE = 'npm run chaos -- [--minutes 10] [--seed 1]'
const MINUTES = { default: 10, least: 0.2, most: 120 }
const MOST_SEED = 0xffff_ffff

/** What was asked for on the command line; a text says what is wrong with it. */
export function readChaosOptions(words: string[], chance: () => number): ChaosOptions | string {
  let given: { minutes?: string; seed?: string }
  try {
    given = parseArgs({ args: words, options: { minutes: { type: 'string' }, seed: { type: 'string' } } }).values
  } catch (error) {
    return (error as Error).message
  }
  const minutes = Number(given.minutes ?? MINUTES.default)
  if (!(minutes >= MINUTES.least && minutes <= MINUTES.most))
    return `--minutes must be a number from ${MINUTES.least} to ${MINUTES.most}`
  const seed = Number(given.seed ?? Math.floor(chance() * MOST_SEED))
  if (!Number.isInteger(seed) || seed < 0 || seed > MOST_SEED)
    return `--seed must be a whole number from 0 to ${MOST_SEED}`
  return { minutes, seed }
}
