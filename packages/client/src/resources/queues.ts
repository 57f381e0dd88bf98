import { Pages } from '../pages.ts'
import type { CallOptions, Transport } from '../transport.ts'
import type {
  GetQueues,
  GetQueuesByQueueScale,
  PostQueuesByQueuePause,
  PostQueuesByQueuePurge,
  PutQueuesByQueue,
  Queue,
  Scale,
} from '../wire.ts'

/** Where runs wait for workers. */
export class Queues {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  list(query: GetQueues['query'] = {}, options?: CallOptions): Pages<Queue> {
    return new Pages((cursor) =>
      this.#transport.call('GET /v1/queues', { query: cursor === undefined ? query : { ...query, cursor } }, options),
    )
  }

  get(queue: string, options?: CallOptions): Promise<Queue> {
    return this.#transport.call('GET /v1/queues/{queue}', { path: { queue } }, options)
  }

  /** Makes a queue, says of which kind it is, or limits it. A queue that jobs name is there without it. */
  put(queue: string, body: PutQueuesByQueue['body'] = {}, options?: CallOptions): Promise<Queue> {
    return this.#transport.call('PUT /v1/queues/{queue}', { path: { queue }, body }, options)
  }

  /** Only an empty one. */
  delete(queue: string, options?: CallOptions): Promise<undefined> {
    return this.#transport.call('DELETE /v1/queues/{queue}', { path: { queue } }, options)
  }

  /** Nothing of it is started until it is resumed. */
  pause(queue: string, body: NonNullable<PostQueuesByQueuePause['body']> = {}, options?: CallOptions): Promise<Queue> {
    return this.#transport.call('POST /v1/queues/{queue}/pause', { path: { queue }, body }, options)
  }

  resume(queue: string, options?: CallOptions): Promise<Queue> {
    return this.#transport.call('POST /v1/queues/{queue}/resume', { path: { queue } }, options)
  }

  /** Cancels all its runs that nobody performs yet. */
  purge(queue: string, options?: CallOptions): Promise<PostQueuesByQueuePurge['response']> {
    return this.#transport.call('POST /v1/queues/{queue}/purge', { path: { queue } }, options)
  }

  /** How many workers it wants: for autoscalers. */
  scale(queue: string, query: GetQueuesByQueueScale['query'] = {}, options?: CallOptions): Promise<Scale> {
    return this.#transport.call('GET /v1/queues/{queue}/scale', { path: { queue }, query }, options)
  }
}
