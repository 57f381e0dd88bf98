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
  /** A worker that was drained and died may have left that behind under the same id. */
  #state: { draining?: boolean } = { draining: false }

  constructor(fields: WorkerFields, deps: RegistrationDeps) {
    this.#fields = fields
    this.#deps = deps
  }

  async put(options: CallOptions): Promise<void> {
    const { client, workerId, serverClock } = this.#deps
    const { lastSeenAt } = await client.workers.put(workerId, { ...this.#fields, ...this.#state }, options)
    // Said once: what an operator says later stands.
    if (this.#state.draining === false) this.#state = {}
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
    this.#state = { draining: true }
    await this.put({ timeoutMs: 1_000, retries: 0 }).catch(() => {})
  }

  async remove(): Promise<void> {
    const { client, workerId } = this.#deps
    await client.workers.delete(workerId, { timeoutMs: 1_000, retries: 0 }).catch(() => {})
  }
}
