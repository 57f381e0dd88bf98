import { link, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BelfryError } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/pause.ts'
import { systemRandom } from '../../runtime/random.ts'
import { replaceFile } from './private-file.ts'
import { livenessOf, ownIdentity, parseIdentity } from './process-identity.ts'

/**
 * A lock between processes that survives kill -9 of its holder, made of numbered claims in a directory.
 *
 * The highest number is the lock: it is free if its holder said so or is dead, and it is taken by creating the next
 * number, which only one can. Nobody ever removes the highest, so whoever comes late with a lower number sees that it
 * lost. (Removing a dead holder's lock instead would let two who both saw it dead remove each other's.)
 */
const POLL_MS = 20
const PATIENCE_MS = 600_000
const SAY_AFTER_MS = 5_000
/** Claims kept behind the highest, so that a directory listing that races with new ones still sees a recent number. */
const KEPT = 8

export interface ClaimLockOptions {
  directory: string
  clock: Clock
  logger: Logger
}

export async function withClaimLock<T>(options: ClaimLockOptions, work: () => Promise<T>): Promise<T> {
  const claim = await take(options)
  try {
    return await work()
  } finally {
    await replaceFile(claim, 'free', 0o644)
  }
}

async function take({ directory, clock, logger }: ClaimLockOptions): Promise<string> {
  await mkdir(directory, { recursive: true, mode: 0o755 })
  const startedAt = clock.now()
  let said = false
  for (;;) {
    const claim = await tryTake(directory)
    if (claim !== null) return claim
    const waitedMs = clock.now() - startedAt
    if (waitedMs > PATIENCE_MS) {
      throw new BelfryError(
        'embedded_database',
        `another process has been starting or stopping the embedded database for ${Math.round(waitedMs / 1000)} s ` +
          `(see the newest file in ${directory}); stop that process and start again`,
      )
    }
    if (!said && waitedMs > SAY_AFTER_MS) {
      said = true
      logger.info('waiting for another process that is starting or stopping the embedded database')
    }
    await pause(POLL_MS)
  }
}

async function tryTake(directory: string): Promise<string | null> {
  const highest = (await claimNumbers(directory)).at(-1) ?? 0
  if (highest > 0 && !(await isFree(join(directory, String(highest))))) return null

  const mine = highest + 1
  const draft = join(directory, `draft-${systemRandom.bytes(8).toString('hex')}`)
  await writeFile(draft, JSON.stringify(ownIdentity()), { flag: 'wx', mode: 0o644 })
  try {
    await link(draft, join(directory, String(mine)))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null
    throw error
  } finally {
    await rm(draft, { force: true })
  }

  const numbers = await claimNumbers(directory)
  if (numbers.at(-1) !== mine) {
    await rm(join(directory, String(mine)), { force: true })
    return null
  }
  for (const old of numbers.slice(0, -KEPT)) await rm(join(directory, String(old)), { force: true })
  return join(directory, String(mine))
}

async function claimNumbers(directory: string): Promise<number[]> {
  const names = await readdir(directory)
  return names
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b)
}

async function isFree(claim: string): Promise<boolean> {
  try {
    const text = await readFile(claim, 'utf8')
    if (text === 'free') return true
    const holder = parseIdentity(text)
    // A holder in another container is not waited for here: `users.ts` keeps two places apart.
    return holder === null || livenessOf(holder) !== 'alive'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
