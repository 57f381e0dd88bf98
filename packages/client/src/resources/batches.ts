import type { CallOptions, Transport } from '../transport.ts'
import type { Batch } from '../wire.ts'

/** Groups of jobs that were created together. */
export class Batches {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** How many of its jobs are open, and how the others ended. */
  get(batchId: string, options?: CallOptions): Promise<Batch> {
    return this.#transport.call('GET /v1/batches/{batchId}', { path: { batchId } }, options)
  }
}
