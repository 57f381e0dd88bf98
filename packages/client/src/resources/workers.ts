import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type { GetWorkers, Worker, WorkerInput } from '../wire.ts'

/** The processes that lease runs of queues. A worker is known from its first lease call on; `put` says more of it. */
export class Workers {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: GetWorkers['query'] = {}, options?: CallOptions): Pages<Worker> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/workers', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  get(workerId: string, options?: CallOptions): Promise<Worker> {
    return this.#transport.call('GET /v1/workers/{workerId}', { path: { workerId } }, options)
  }

  /** `{ draining: true }` reaches the worker with its next call, and it is leased nothing more. */
  put(workerId: string, body: WorkerInput = {}, options?: CallOptions): Promise<Worker> {
    return this.#transport.call('PUT /v1/workers/{workerId}', { path: { workerId }, body }, options)
  }

  /** It is forgotten; what it has leased stays leased. */
  delete(workerId: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/workers/{workerId}', { path: { workerId } }, options)
  }
}
