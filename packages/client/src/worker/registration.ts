import type { Connection } from './connection.ts'
import type { CallOptions, WorkerClient, WorkerFields } from './lease-calls.ts'
import type { ServerClock } from './server-clock.ts'

const TIMEOUT_MS = 5_000

interface RegistrationDeps {
  client: WorkerClient
  workerId: string
  serverClock: ServerClock
}

/** The worker's entry in the list that operators see. Nothing depends on it: a worker without one works just the same. */
export class Registration {
  readonly #deps: RegistrationDeps
  readonly #fields: WorkerFields
  readonly #ended = new AbortController()
  #isDraining = false

  constructor(fields: WorkerFields, deps: RegistrationDeps) {
    this.#fields = fields
    this.#deps = deps
  }

  async put(options: CallOptions): Promise<void> {
    const { client, workerId, serverClock } = this.#deps
    const fields = this.#isDraining ? { ...this.#fields, draining: true } : this.#fields
    const { lastSeenAt } = await client.workers.put(workerId, fields, options)
    if (lastSeenAt) serverClock.observe(Date.parse(lastSeenAt))
  }

  /** Until it is done. */
  start(connection: Connection): void {
    const { signal } = this.#ended
    connection.repeat((options) => this.put(options), { timeoutMs: TIMEOUT_MS, signal }).catch(() => {})
  }

  /** Nothing more is leased to a draining worker. */
  async drain(): Promise<void> {
    this.#ended.abort()
    this.#isDraining = true
    await this.put({ timeoutMs: 1_000, retries: 0 }).catch(() => {})
  }

  async remove(): Promise<void> {
    const { client, workerId } = this.#deps
    await client.workers.delete(workerId, { timeoutMs: 1_000, retries: 0 }).catch(() => {})
  }
}
