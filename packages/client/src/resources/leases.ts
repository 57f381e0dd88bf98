import type { CallOptions, Transport } from '../transport.ts'
import type {
  PostLeasesComplete,
  PostLeasesHeartbeat,
  PostLeasesRelease,
  PostQueuesByQueueLease,
} from '../wire-workers.ts'

export type LeaseInput = PostQueuesByQueueLease['body']
export type LeaseAnswer = PostQueuesByQueueLease['response']
/** One run as a worker gets it. */
export type LeasedRun = LeaseAnswer['runs'][number]
export type LeaseHeartbeat = PostLeasesHeartbeat['body']['leases'][number]
export type LeaseResult = PostLeasesComplete['body']['results'][number]

/**
 * What workers are made of, for whoever writes their own; `@belfry/client/worker` has one. Every call may be repeated, and
 * answers what the first would have.
 */
export class Leases {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Runs of a queue, as soon as there are any, or none after `waitMs`. Without a `requestId` it gets one. */
  lease(queue: string, body: LeaseInput, options?: CallOptions): Promise<LeaseAnswer> {
    const asked = { ...body, requestId: body.requestId ?? this.#transport.uniqueId() }
    const nature = { ...options, isRepeatable: true, waitMs: body.waitMs ?? 0 }
    return this.#transport.call('POST /v1/queues/{queue}/lease', { path: { queue }, body: asked }, nature)
  }

  /** Keeps leases alive, and brings checkpoints, progress and logs. */
  heartbeat(body: PostLeasesHeartbeat['body'], options?: CallOptions): Promise<PostLeasesHeartbeat['response']> {
    return this.#transport.call('POST /v1/leases/heartbeat', { body }, { ...options, isRepeatable: true })
  }

  /** Says how attempts ended. */
  complete(body: PostLeasesComplete['body'], options?: CallOptions): Promise<PostLeasesComplete['response']> {
    return this.#transport.call('POST /v1/leases/complete', { body }, { ...options, isRepeatable: true })
  }

  /** Gives runs back; their `failures` do not rise. */
  release(body: PostLeasesRelease['body'], options?: CallOptions): Promise<PostLeasesRelease['response']> {
    return this.#transport.call('POST /v1/leases/release', { body }, { ...options, isRepeatable: true })
  }
}
