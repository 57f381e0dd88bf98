import type { CallOptions, Transport } from '../transport.ts'
import type {
  Completion,
  Heartbeat,
  Leased,
  PostLeasesComplete,
  PostLeasesHeartbeat,
  PostLeasesRelease,
  PostQueuesByQueueLease,
} from '../wire.ts'

type LeaseInput = PostQueuesByQueueLease['body']

export type HeartbeatAnswer = PostLeasesHeartbeat['response']
export type CompleteAnswer = PostLeasesComplete['response']
export type ReleaseAnswer = PostLeasesRelease['response']
/** `lease_lost`: the attempt is over, or somebody else's. */
export type LeaseOutcome = CompleteAnswer['results'][number]['outcome']

/**
 * What workers are made of, for whoever writes their own; `@belfry/client/worker` has one. Every call may be repeated, and
 * answers what the first would have.
 */
export class Leases {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Runs of a queue, as soon as there are any, or none after `waitMs`. A call without a `requestId` gets one. */
  lease(queue: string, body: LeaseInput, options?: CallOptions): Promise<Leased> {
    const asked = { ...body, requestId: body.requestId ?? this.#transport.uniqueId() }
    const nature = { ...options, isRepeatable: true, waitMs: body.waitMs ?? 0 }
    return this.#transport.call('POST /v1/queues/{queue}/lease', { path: { queue }, body: asked }, nature)
  }

  /** Keeps leases alive, and leaves checkpoints, progress and log lines. */
  heartbeat(body: { workerId: string; leases: Heartbeat[] }, options?: CallOptions): Promise<HeartbeatAnswer> {
    const nature = { ...options, isRepeatable: true }
    return this.#transport.call('POST /v1/leases/heartbeat', { body }, nature)
  }

  /** Says how attempts ended. */
  complete(body: { workerId: string; results: Completion[] }, options?: CallOptions): Promise<CompleteAnswer> {
    const nature = { ...options, isRepeatable: true }
    return this.#transport.call('POST /v1/leases/complete', { body }, nature)
  }

  /** Gives runs back; their `failures` do not rise. */
  release(
    body: { workerId: string; leases: { token: string; begun?: false }[] },
    options?: CallOptions,
  ): Promise<ReleaseAnswer> {
    const nature = { ...options, isRepeatable: true }
    return this.#transport.call('POST /v1/leases/release', { body }, nature)
  }
}
