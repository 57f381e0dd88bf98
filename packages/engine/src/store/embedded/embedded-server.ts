import { existsSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { invariant } from '../../errors.ts'
import { inBackground } from '../../runtime/background-timer.ts'
import { type Clock, SystemClock } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { EmbeddedConnection } from './answering.ts'
import { type BringUpOptions, bringUp, closeEndpoint, logFileOf } from './bring-up.ts'
import { withClaimLock } from './claim-lock.ts'
import type { Cluster } from './cluster.ts'
import { fileFailure } from './failure.ts'
import { askToStop, boundLog, findPostmaster, stopPostmaster } from './postmaster.ts'
import type { ServerSettings } from './settings.ts'
import { Users } from './users.ts'

/**
 * A real PostgreSQL that Belfry starts, watches and stops.
 *
 * One data directory has at most one server and any number of users (processes, or engines inside one). Whoever comes
 * first makes the cluster and starts the server, the others join; the last one to stop stops it. Starting, joining and
 * stopping happen under one lock between processes, so none of them sees another half done.
 *
 * Killing any of the processes at any point loses nothing: a lock or a user of a dead process counts as gone, a draft
 * of a cluster is made anew, a server whose Belfry died is taken over by the next, and a server that died is started
 * again by whoever still uses it. Everything committed is on the disk (fsync is on), so PostgreSQL repairs itself.
 *
 * In the data directory: postgres/ (the cluster), postgres.log, users/, locks/, endpoint.json, password.
 */
export interface EmbeddedServer {
  connection: EmbeddedConnection
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  dataDir: string
  logger: Logger
  /** Settings of PostgreSQL that win over Belfry's own: for tests, which do not need fsync. */
  settings?: ServerSettings
}

const WATCH_MS = 200
const CHORES_EVERY_MS = 5_000
const LONGEST_BACKOFF_MS = 10_000

export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const dataDir = resolve(options.dataDir)
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o755 })
    return await Server.start({ ...options, dataDir: await realpath(dataDir) })
  } catch (error) {
    throw fileFailure(dataDir, error)
  }
}

class Server implements EmbeddedServer {
  readonly #dataDir: string
  readonly #settings: ServerSettings
  readonly #logger: Logger
  readonly #clock: Clock = new SystemClock()
  readonly #users: Users
  #cluster: Cluster | undefined
  #connection: EmbeddedConnection | undefined
  #watching = { cancel: () => {} }
  #watch: Promise<void> = Promise.resolve()
  #choresAt = 0
  #failures = 0
  #nextTryAt = 0
  #stopped: Promise<void> | undefined

  private constructor(options: EmbeddedOptions) {
    this.#dataDir = options.dataDir
    this.#settings = options.settings ?? {}
    this.#logger = options.logger
    this.#users = new Users(join(options.dataDir, 'users'), this.#clock)
  }

  static async start(options: EmbeddedOptions): Promise<Server> {
    const server = new Server(options)
    await server.#start()
    return server
  }

  get connection(): EmbeddedConnection {
    invariant(this.#connection, 'a server is handed out only once it has answered')
    return this.#connection
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#leave()
    return this.#stopped
  }

  async #start(): Promise<void> {
    // Entered before anything is looked at: of two that start at once in different containers each then sees the other.
    await this.#users.enter()
    unstopped.add(this)
    const signs = inBackground(CHORES_EVERY_MS, async () => this.#users.giveSign())
    try {
      await this.#users.waitUntilNobodyElsewhere(this.#logger)
      await this.#bringUp('made if missing')
    } catch (error) {
      unstopped.delete(this)
      this.#users.leave()
      if (this.#users.others() === 'none' && !findPostmaster(this.#clusterDirectory)) await closeEndpoint(this.#dataDir)
      throw error
    } finally {
      signs.cancel()
    }
    this.#watching = inBackground(WATCH_MS, () => {
      this.#watch = this.#runOnce()
      return this.#watch
    })
  }

  #bringUp(cluster: BringUpOptions['cluster']): Promise<void> {
    return this.#locked(async () => {
      const options = { dataDir: this.#dataDir, settings: this.#settings, clock: this.#clock, logger: this.#logger }
      const up = await bringUp({ ...options, cluster })
      this.#cluster = up.cluster
      this.#connection = up.connection
    })
  }

  get #clusterDirectory(): string {
    return join(this.#dataDir, 'postgres')
  }

  #locked<T>(work: () => Promise<T>): Promise<T> {
    return withClaimLock({ directory: join(this.#dataDir, 'locks'), clock: this.#clock, logger: this.#logger }, work)
  }

  /** One look at the server: starts it again if it is gone. */
  async #runOnce(): Promise<void> {
    const now = this.#clock.now()
    try {
      if (now >= this.#choresAt) {
        this.#choresAt = now + CHORES_EVERY_MS
        this.#users.giveSign()
        await boundLog(logFileOf(this.#dataDir))
      }
      if (findPostmaster(this.#clusterDirectory)) {
        this.#failures = 0
      } else if (now >= this.#nextTryAt) {
        await this.#restart()
      }
    } catch (error) {
      this.#failures += 1
      const backoffMs = Math.min(WATCH_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS)
      this.#nextTryAt = this.#clock.now() + backoffMs
      this.#logger.error('the embedded database cannot be started again', { error, retryInMs: backoffMs })
    }
  }

  async #restart(): Promise<void> {
    // Without this look, the lock would make a removed data directory anew.
    if (!existsSync(this.#dataDir)) throw new Error(`${this.#dataDir} is gone; was it removed or unmounted?`)
    this.#logger.warn('the embedded database went away and is started again')
    await this.#bringUp('expected')
    this.#logger.info('the embedded database is back')
  }

  async #leave(): Promise<void> {
    this.#watching.cancel()
    await this.#watch
    unstopped.delete(this)
    if (!existsSync(this.#dataDir)) return
    await this.#locked(async () => {
      this.#users.leave()
      if (this.#users.others() !== 'none') return
      if (this.#cluster) await stopPostmaster(this.#cluster, this.#clock, this.#logger)
      await closeEndpoint(this.#dataDir)
    })
  }

  /** The process ends without having stopped: nobody can be waited for any more, but the server need not be left alone. */
  leaveAtExit(): void {
    this.#users.leave()
    if (this.#users.others() !== 'none') return
    const found = findPostmaster(this.#clusterDirectory)
    if (found) askToStop(found.pid, this.#cluster)
  }
}

const unstopped = new Set<Server>()

process.once('exit', () => {
  for (const server of unstopped) {
    try {
      server.leaveAtExit()
    } catch {
      // The next start takes over whatever is left.
    }
  }
})
