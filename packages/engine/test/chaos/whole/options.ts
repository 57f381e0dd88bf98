import { parseArgs } from 'node:util'

export interface ChaosOptions {
  minutes: number
  seed: number
  /** So often the primary is lost and a standby takes its place; 0: there is one server, which crashes instead. */
  failovers: number
}

export const USAGE = 'npm run chaos -- [--minutes 10] [--seed 1] [--failovers 0]'
const MINUTES = { default: 10, least: 0.2, most: 120 }
const MOST_SEED = 0xffff_ffff
const MOST_FAILOVERS = 100

/** What was asked for on the command line; a text says what is wrong with it. */
export function readChaosOptions(words: string[], chance: () => number): ChaosOptions | string {
  let given: { minutes?: string; seed?: string; failovers?: string }
  try {
    const text = { type: 'string' } as const
    given = parseArgs({ args: words, options: { minutes: text, seed: text, failovers: text } }).values
  } catch (error) {
    return (error as Error).message
  }
  const minutes = Number(given.minutes ?? MINUTES.default)
  if (!(minutes >= MINUTES.least && minutes <= MINUTES.most))
    return `--minutes must be a number from ${MINUTES.least} to ${MINUTES.most}`
  const seed = Number(given.seed ?? Math.floor(chance() * MOST_SEED))
  if (!Number.isInteger(seed) || seed < 0 || seed > MOST_SEED)
    return `--seed must be a whole number from 0 to ${MOST_SEED}`
  const failovers = Number(given.failovers ?? 0)
  if (!Number.isInteger(failovers) || failovers < 0 || failovers > MOST_FAILOVERS)
    return `--failovers must be a whole number from 0 to ${MOST_FAILOVERS}`
  return { minutes, seed, failovers }
}
