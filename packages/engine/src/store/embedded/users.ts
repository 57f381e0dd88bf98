import { readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { BelfryError } from '../../errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/pause.ts'
import { systemRandom } from '../../runtime/random.ts'
import { replaceFile } from './private-file.ts'
import { livenessOf, ownIdentity, parseIdentity } from './process-identity.ts'

/** How long a user in another place, whose process cannot be looked at, counts as alive after its last sign. */
const SIGN_OF_LIFE_MS = 20_000
const PATIENCE_MS = SIGN_OF_LIFE_MS + 10_000

/**
 * Who uses the server of a data directory: one file per user, named at random, holding the identity of its process.
 * The last one to leave stops the server. A user that died without leaving is recognised by its identity.
 *
 * PostgreSQL cannot tell that a server in another container has the same directory open, and two of them would destroy
 * it. So users from another place are believed by the age of their last sign of life, and nobody joins while one lives.
 */
export class Users {
  readonly #directory: string
  readonly #own: string
  readonly #clock: Clock

  constructor(directory: string, clock: Clock) {
    this.#directory = directory
    this.#own = join(directory, `${systemRandom.bytes(8).toString('hex')}.user`)
    this.#clock = clock
  }

  async enter(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o755 })
    await replaceFile(this.#own, JSON.stringify(ownIdentity()), 0o644)
  }

  /** Synchronous, because it is also the last thing a process does that exits without stopping. */
  leave(): void {
    rmSync(this.#own, { force: true })
  }

  giveSign(): void {
    const seconds = this.#clock.now() / 1_000
    try {
      utimesSync(this.#own, seconds, seconds)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }

  /** Others that are alive; the files of the dead are removed on the way. */
  others(): 'none' | 'here' | 'elsewhere' {
    let found: 'none' | 'here' | 'elsewhere' = 'none'
    for (const name of readdirSync(this.#directory)) {
      const path = join(this.#directory, name)
      if (!name.endsWith('.user') || path === this.#own) continue
      const liveness = this.#livenessOf(path)
      if (liveness === 'dead') rmSync(path, { force: true })
      if (liveness === 'elsewhere') found = 'elsewhere'
      if (liveness === 'alive' && found === 'none') found = 'here'
    }
    return found
  }

  async waitUntilNobodyElsewhere(logger: Logger): Promise<void> {
    const startedAt = this.#clock.now()
    let said = false
    while (this.others() === 'elsewhere') {
      this.giveSign()
      if (!said) logger.info('waiting for another machine or container that used the data directory a moment ago')
      said = true
      if (this.#clock.now() - startedAt > PATIENCE_MS) {
        throw new BelfryError(
          'embedded_database',
          'the data directory is in use by Belfry on another machine or in another container; stop that one first, ' +
            'give this one a directory of its own, or let both use one PostgreSQL by BELFRY_DATABASE_URL',
        )
      }
      await pause(250)
    }
  }

  #livenessOf(path: string): 'alive' | 'dead' | 'elsewhere' {
    try {
      const identity = parseIdentity(readFileSync(path, 'utf8'))
      const liveness = identity === null ? 'dead' : livenessOf(identity)
      if (liveness !== 'elsewhere') return liveness
      return this.#clock.now() - statSync(path).mtimeMs < SIGN_OF_LIFE_MS ? 'elsewhere' : 'dead'
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'dead'
      throw error
    }
  }
}
