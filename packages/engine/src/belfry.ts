import { checkedOptions, invalidArgument } from './call-options.ts'
import { findEncryptionKey } from './encryption-key.ts'
import { BelfryError } from './errors.ts'
import type { ActiveRun } from './executors/handlers/active-run.ts'
import { type BatchHandler, inBatches } from './executors/handlers/batch-handler.ts'
import type { Handler } from './executors/handlers/perform-handler.ts'
import type { CallbackBody } from './executors/http/callbacks.ts'
import { Complaints, readInteger, readWord } from './input/read-fields.ts'
import { Library } from './library.ts'
import type { Forecast, ForecastRequest } from './lookup/forecasts.ts'
import type { Admin } from './node/admin.ts'
import { Engine } from './node/engine.ts'
import { type BelfryOptions, isWebAddress, readOptions, type Settings } from './options.ts'
import { type Readers, startReaders } from './readers.ts'
import { type Readiness, readiness } from './readiness.ts'
import { SystemClock } from './runtime/clock.ts'
import { pause } from './runtime/pause.ts'
import { systemRandom } from './runtime/random.ts'
import { listNodes, type NodeView } from './shards/list-nodes.sql.ts'
import { awaitDatabase } from './store/await-database.ts'
import { Database } from './store/database.ts'
import { type EmbeddedServer, startEmbedded } from './store/embedded/embedded-server.ts'
import { PING } from './store/ping.sql.ts'
import { prepareSchema } from './store/prepare-schema.ts'
import { type SchemaVersion, schemaTooNew } from './store/schema-state.sql.ts'
import { Tenant } from './tenant.ts'
import { type Caller, TenantScope } from './tenant-scope.ts'

export interface HandleOptions {
  /** How many calls of the handler are under way at a time. */
  concurrency?: number
  tenant?: string
}

export interface BatchHandleOptions extends HandleOptions {
  /** Up to `size` runs (1–1,000) in one call, which waits for at most `waitMs` (0) until there are so many. */
  batch: { size: number; waitMs?: number }
}

const DEFAULT_CONCURRENCY = 10
const MAX_CONCURRENCY = 100_000
const MAX_BATCH = 1_000
const MAX_BATCH_WAIT_MS = 60_000
const RETRY_MS = 500
/** Where a node that nobody gave another address is probably reached. */
const DEFAULT_URL = 'http://127.0.0.1:8080'

interface Parts {
  embedded: EmbeddedServer | null
  readers: Readers
  /** Shared with the engine, which asks for it at every call. */
  address: { url: string | null }
  missingWall: string | null
  /** The newest migration that this program knows. */
  known: number
  keyWeakness: string | null
}

/** Belfry as a library: create jobs and perform them in this process, on any number of processes at once. */
export class Belfry extends Library {
  /** Tenants and their keys: for whoever is above all tenants. */
  readonly admin: Admin
  /** When this node has stopped: null after `stop()`, otherwise the reason why it stopped by itself. */
  readonly ended: Promise<BelfryError | null>
  readonly #engine: Engine
  readonly #settings: Settings
  readonly #parts: Parts
  readonly #handled = new Set<string>()
  #stopped: Promise<void> | null = null
  #tellEnd: (reason: BelfryError | null) => void = () => {}

  private constructor(engine: Engine, settings: Settings, parts: Parts) {
    super(engine)
    this.#engine = engine
    this.#settings = settings
    this.#parts = parts
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve
    })
    this.admin = engine.admin
  }

  /** Starts a node. Without `database` it brings its own PostgreSQL; with one that is away it waits for it. */
  static async start(options: BelfryOptions = {}): Promise<Belfry> {
    const settings = readOptions(options)
    const { logger, schema, leaseMs, cancelGraceMs, historyDays, roles } = settings
    const embedded = settings.database === null ? await startEmbedded({ dataDir: settings.dataDir, logger }) : null
    const connection = settings.database ?? embedded?.connection ?? {}
    const db = new Database({ connection, schema, logger })
    try {
      const prepared = await awaitDatabase(logger, () => prepareSchema(db, settings.shards, logger))
      const { shards, missingWall, known } = prepared
      const clock = new SystemClock({
        onJump: (offsetMs) => logger.warn("the database's clock and this node's came apart", { offsetMs }),
      })
      const found = await awaitDatabase(logger, () => findEncryptionKey(db, settings))
      const address: { url: string | null } = { url: settings.publicUrl }
      let belfry: Belfry | null = null
      const engine = new Engine({
        db,
        clock,
        random: systemRandom,
        logger,
        shards,
        leaseMs,
        cancelGraceMs,
        historyDays,
        roles,
        vaultKey: found.key,
        allowPrivateTargets: settings.allowPrivateTargets,
        publicUrl: () => address.url ?? DEFAULT_URL,
        address: () => address.url,
        onSchema: (found) => {
          if (belfry !== null) belfry.#met(found)
        },
      })
      await awaitDatabase(logger, () => engine.partitioner.ensure())
      // Before the first claim it is known which queues are paused.
      await engine.pulse.runOnce().catch((error: unknown) => logger.warn('the first pulse failed', { error }))
      engine.start()
      const readers = startReaders(settings, connection, missingWall === null)
      const keyWeakness = found.weakness
      belfry = new Belfry(engine, settings, { embedded, readers, address, missingWall, known, keyWeakness })
      return belfry
    } catch (error) {
      await db.close()
      await embedded?.stop()
      throw error
    }
  }

  /** Makes a queue that all tenants share: whoever names it and has none of that name means this one. Tenants take turns in it. */
  async shareQueue(queue: string): Promise<void> {
    const complaints = new Complaints()
    readWord(complaints, 'queue', queue)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    await this.#engine.registry.shareQueue(queue)
  }

  /** Performs the runs of a queue in this process, one in a call or, with `batch`, many. */
  handle(queue: string, handler: BatchHandler, options: BatchHandleOptions): void
  handle(queue: string, handler: (run: ActiveRun) => unknown, options?: HandleOptions): void
  handle(
    queue: string,
    handler: BatchHandler & Handler,
    options: HandleOptions & Partial<BatchHandleOptions> = {},
  ): void {
    const names = ['concurrency', 'tenant', 'batch'] as const
    const { concurrency = DEFAULT_CONCURRENCY, tenant = 'default', batch } = checkedOptions(options, names)
    if (typeof handler !== 'function') throw invalidArgument('handler', 'must be a function that takes a run')
    const { size = 1, waitMs = 0 } = batch === undefined ? {} : checkedOptions(batch, ['size', 'waitMs'])
    const complaints = new Complaints()
    readWord(complaints, 'queue', queue)
    readWord(complaints, 'tenant', tenant)
    readInteger(complaints, 'concurrency', concurrency, 1, MAX_CONCURRENCY)
    readInteger(complaints, 'batch.size', size, 1, MAX_BATCH)
    readInteger(complaints, 'batch.waitMs', waitMs, 0, MAX_BATCH_WAIT_MS)
    if (complaints.list.length > 0) throw complaints.error('invalid_argument')
    if (this.#handled.has(`${tenant}.${queue}`))
      throw new BelfryError('already_handled', `the queue "${queue}" has a handler already`)
    this.#handled.add(`${tenant}.${queue}`)
    const one = batch ? inBatches(handler, { calls: concurrency, size, waitMs }, this.#engine.clock) : handler
    void this.#serve(tenant, queue, one, concurrency * size)
  }

  /** Belfry as a tenant sees it, for one caller; cheap enough to be made per request. */
  tenant(caller: Caller): Tenant {
    this.#engine.registry.learn(caller.tenant, caller.tenantId)
    return new Tenant(new TenantScope(caller, this.#engine, this.#parts.readers))
  }

  /** The coming load of all tenants; a tenant's own is `tenant(…).forecast`. */
  forecast(request: ForecastRequest = {}): Promise<Forecast> {
    return this.#engine.forecasts.get(this.#engine.db, null, request)
  }

  /** The nodes that are there. */
  nodes(): Promise<NodeView[]> {
    return listNodes(this.#engine.db)
  }

  /** Whether this node can do its work, and what stands in its way. */
  readiness(): Promise<Readiness> {
    const zoneDataWeakness = this.#engine.replanning.zones.weakness()
    return readiness({ db: this.#engine.db, ...this.#parts, zoneDataWeakness })
  }

  /** What callback URLs begin with from now on, unless an option said it; known once the server listens. */
  setPublicUrl(url: string): void {
    if (!isWebAddress(url)) throw invalidArgument('url', 'must be an address such as https://belfry.example.com')
    this.#parts.address.url = this.#settings.publicUrl ?? url.replace(/\/+$/, '')
  }

  /** Ends a run whose target said that it would report later. */
  async completeCallback(token: string, body: CallbackBody): Promise<void> {
    const outcome = await this.#engine.http.callbacks.complete(token, body)
    if (outcome === 'unknown_token') throw new BelfryError('not_found', 'there is no such callback')
    if (outcome === 'lease_lost')
      throw new BelfryError('lease_lost', 'the run has ended, or was given to another attempt')
  }

  /** Answers the lease calls that wait for work, and lets no more wait: the server that they come through closes. */
  endLeaseCalls(): void {
    this.#engine.remote.calls.close()
  }

  /** Rejects when the database does not answer, or takes no writes. */
  async ping(): Promise<void> {
    await this.#engine.db.query(PING, [])
  }

  /** Takes nothing new, lets running handlers finish within the grace time, releases the rest, and closes everything. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop(null)
    return this.#stopped
  }

  async #stop(reason: BelfryError | null): Promise<void> {
    try {
      await this.#engine.stop(this.#settings.drainMs)
      await this.#parts.readers.close()
      await this.#engine.db.close()
      await this.#parts.embedded?.stop()
    } finally {
      this.#tellEnd(reason)
    }
  }

  /** A newer program may have changed the schema: what this one cannot live with makes it stop by itself. */
  #met({ newest, needed }: SchemaVersion): void {
    const { known } = this.#parts
    if (needed <= known || this.#stopped !== null) return
    const { logger, schema } = this.#settings
    const reason = schemaTooNew(schema, { newest, known, needed })
    logger.error('this node drains and ends', { error: reason })
    this.#stopped = this.#stop(reason)
    this.#stopped.catch((error: unknown) => logger.error('this node did not end well', { error }))
  }

  /** The queue's number needs the database, which may be away: tried until it is known. */
  async #serve(
    tenant: string,
    queue: string,
    handler: (run: ActiveRun) => unknown,
    concurrency: number,
  ): Promise<void> {
    const { registry } = this.#engine
    while (!this.#stopped) {
      try {
        const queueId = await registry.queueId(await registry.tenantId(tenant), queue)
        if (!this.#stopped) this.#engine.handle(queueId, handler, concurrency)
        return
      } catch (error) {
        this.#settings.logger.warn('a queue cannot be served yet', { queue, error })
        await pause(RETRY_MS)
      }
    }
  }
}
