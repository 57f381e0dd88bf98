import type { CallOptions, Transport } from '../transport.ts'
import type { GetPauses, Pause, PauseInput } from '../wire.ts'

/** What is not started: all that a tenant has, or that shares a key, or that calls an origin. Queues and jobs are paused by their names. */
export class Pauses {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** With the paused queues; paused jobs are `jobs.list({ status: 'paused' })`. */
  list(options?: CallOptions): Promise<GetPauses['response']> {
    return this.#transport.call('GET /v1/pauses', {}, options)
  }

  /** What is paused already is answered as it is. */
  create(pause: PauseInput, options?: CallOptions): Promise<Pause> {
    return this.#transport.call('POST /v1/pauses', { body: pause }, options)
  }

  /** Its runs come back one after the other. */
  end(id: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/pauses/{id}', { path: { id } }, options)
  }
}
