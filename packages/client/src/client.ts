import { ApiKeys } from './resources/api-keys.ts'
import { Backfills } from './resources/backfills.ts'
import { Batches } from './resources/batches.ts'
import { Calendars } from './resources/calendars.ts'
import { Circuits } from './resources/circuits.ts'
import { DeadLetters } from './resources/dead-letters.ts'
import { Jobs } from './resources/jobs.ts'
import { Leases } from './resources/leases.ts'
import { Nodes } from './resources/nodes.ts'
import { Origins } from './resources/origins.ts'
import { Pauses } from './resources/pauses.ts'
import { Payloads } from './resources/payloads.ts'
import { Queues } from './resources/queues.ts'
import { Runs } from './resources/runs.ts'
import { Secrets } from './resources/secrets.ts'
import { SigningKeys } from './resources/signing-keys.ts'
import { Tenants } from './resources/tenants.ts'
import { Workers } from './resources/workers.ts'
import { type CallOptions, type ConnectionOptions, Transport } from './transport.ts'
import type { Forecast, GetForecast, GetStats, Stats, WhoAmI } from './wire.ts'

/**
 * A Belfry server from afar. Making one connects to nothing.
 *
 * Calls whose repetition is harmless are repeated, with growing pauses, when no answer comes, on 502, 503 and 504, and on 429
 * as the server asks for: everything that reads, puts or deletes, creates (by their idempotency key) and what workers call.
 * What is refused throws a `BelfryApiError` with its `code`, what gets no answer a `BelfryConnectionError`.
 *
 * Instants may be given as `Date` or text; they come back as they stand on the wire, as RFC 3339 text in UTC.
 */
export class BelfryClient {
  readonly jobs: Jobs
  readonly runs: Runs
  readonly backfills: Backfills
  readonly batches: Batches
  readonly queues: Queues
  readonly pauses: Pauses
  readonly calendars: Calendars
  readonly deadLetters: DeadLetters
  readonly payloads: Payloads
  readonly workers: Workers
  readonly leases: Leases
  readonly secrets: Secrets
  readonly signingKeys: SigningKeys
  readonly circuits: Circuits
  readonly origins: Origins
  readonly nodes: Nodes
  readonly tenants: Tenants
  readonly apiKeys: ApiKeys
  readonly #transport: Transport

  constructor(options: ConnectionOptions) {
    const transport = new Transport(options)
    this.#transport = transport
    this.jobs = new Jobs(transport)
    this.runs = new Runs(transport)
    this.backfills = new Backfills(transport)
    this.batches = new Batches(transport)
    this.queues = new Queues(transport)
    this.pauses = new Pauses(transport)
    this.calendars = new Calendars(transport)
    this.deadLetters = new DeadLetters(transport)
    this.payloads = new Payloads(transport)
    this.workers = new Workers(transport)
    this.leases = new Leases(transport)
    this.secrets = new Secrets(transport)
    this.signingKeys = new SigningKeys(transport)
    this.circuits = new Circuits(transport)
    this.origins = new Origins(transport)
    this.nodes = new Nodes(transport)
    this.tenants = new Tenants(transport)
    this.apiKeys = new ApiKeys(transport)
  }

  /** For a worker, whose heartbeats are sent by a thread of their own while its event loop is blocked. */
  get address(): Transport['address'] {
    return this.#transport.address
  }

  /** What the key in use may do, and for whom. */
  whoami(options?: CallOptions): Promise<WhoAmI> {
    return this.#transport.call('GET /v1/whoami', {}, options)
  }

  /** How the work stands: runs by state, what ended lately, what is due next. */
  stats(query: GetStats['query'] = {}, options?: CallOptions): Promise<Stats> {
    return this.#transport.call('GET /v1/stats', { query }, options)
  }

  /** The coming load: runs expected in each minute, by queue and by origin. */
  forecast(query: GetForecast['query'] = {}, options?: CallOptions): Promise<Forecast> {
    return this.#transport.call('GET /v1/forecast', { query }, options)
  }
}
