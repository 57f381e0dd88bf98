import type { Finisher } from '../attempts/finisher.ts'
import type { Beginnings } from '../executors/beginnings.ts'
import { Callbacks } from '../executors/http/callbacks.ts'
import { Circuits } from '../executors/http/circuits.ts'
import type { HttpDeps } from '../executors/http/http-call.ts'
import { httpDeps } from '../executors/http/http-deps.ts'
import { HttpExecutor, type HttpSettings } from '../executors/http/http-executor.ts'
import { OriginLimits } from '../executors/http/origin-limits.ts'
import type { Definitions } from '../leases/definitions.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import type { Random } from '../runtime/random.ts'
import type { Paused } from '../shards/paused.ts'
import type { Wakeups } from '../shards/wakeups.sql.ts'
import type { Database } from '../store/database.ts'
import { Payloads } from '../vault/payloads.sql.ts'
import { Secrets } from '../vault/secrets.sql.ts'
import { SigningKeys } from '../vault/signing-keys.sql.ts'
import { Vault } from '../vault/vault.ts'

interface HttpSideDeps {
  db: Database
  clock: Clock
  random: Random
  logger: Logger
  shards: number
  finisher: Finisher
  definitions: Definitions
  wakeups: Wakeups
  stopping: AbortSignal
  paused: Paused
  beginnings: Beginnings
  vaultKey: Uint8Array
  allowPrivateTargets: boolean
  publicUrl(): string
  liveNodes(): number
  payloadLimit(tenantId: number): Promise<number>
  settings: HttpSettings
}

const PURGE_EVERY_MS = 3_600_000

/** All that HTTP calls need on a node: what is sealed, the circuits, the callbacks, and the executor. */
export class HttpSide {
  readonly secrets: Secrets
  readonly signingKeys: SigningKeys
  readonly payloads: Payloads
  readonly circuits: Circuits
  readonly limits: OriginLimits
  readonly callbacks: Callbacks
  readonly executor: HttpExecutor
  /** What it does by itself, by name. */
  readonly steps: readonly (readonly [string, Step])[]
  readonly #clock: Clock
  readonly #http: HttpDeps

  constructor(deps: HttpSideDeps) {
    const { clock, settings } = deps
    const vault = new Vault(deps.vaultKey)
    this.#clock = clock
    this.secrets = new Secrets({ ...deps, vault })
    this.signingKeys = new SigningKeys({ ...deps, vault })
    this.payloads = new Payloads({ ...deps, vault, limitOf: deps.payloadLimit })
    this.circuits = new Circuits(deps, settings.circuits)
    this.limits = new OriginLimits(deps)
    this.steps = [
      ['circuits', this.circuits],
      ['origin limits', this.limits],
    ]
    this.callbacks = new Callbacks({ ...deps, db: deps.db.vital })
    const { secrets, signingKeys, payloads, circuits, limits, callbacks } = this
    this.#http = httpDeps({ ...deps, secrets, signingKeys, payloads })
    this.executor = new HttpExecutor({ ...deps, circuits, limits, callbacks, http: this.#http }, settings)
  }

  /** Removes payloads that nobody uses any more, and circuits that nobody calls. */
  async purge(): Promise<{ waitMs: number }> {
    const now = this.#clock.now()
    await this.payloads.purge(now)
    await this.circuits.purge(now)
    return { waitMs: PURGE_EVERY_MS }
  }

  async close(): Promise<void> {
    await this.#http.transport.close()
  }
}
