import type { CompleteAnswer, HeartbeatAnswer, ReleaseAnswer } from '../resources/leases.ts'
import type { CallOptions } from '../transport.ts'
import type { Completion, Heartbeat, Leased, LeasedRun, PostQueuesByQueueLease, WorkerInput } from '../wire.ts'

export type { CallOptions, Completion, HeartbeatAnswer, LeasedRun }
export type HeartbeatItem = Heartbeat
export type LeaseAnswer = Leased
export type LeaseCall = Required<Omit<PostQueuesByQueueLease['body'], 'results'>>
export type HeartbeatOutcome = HeartbeatAnswer['leases'][number]
export type ItemOutcome = CompleteAnswer['results'][number]
export type FailureClass = NonNullable<NonNullable<Completion['error']>['class']>
export type LogLine = Required<NonNullable<Heartbeat['logs']>[number]>
export type LogLevel = LogLine['level']
export type WorkerFields = WorkerInput

/** What a worker asks of the client; `BelfryClient` is one. */
export interface WorkerClient {
  /** Where the server is and how to be known there: for the thread that renews leases while the event loop is blocked. */
  readonly address?: { url: string; headers: Readonly<Record<string, string>> } | null
  readonly leases: {
    lease(queue: string, call: LeaseCall, options?: CallOptions): Promise<LeaseAnswer>
    heartbeat(call: { workerId: string; leases: Heartbeat[] }, options?: CallOptions): Promise<HeartbeatAnswer>
    complete(call: { workerId: string; results: Completion[] }, options?: CallOptions): Promise<CompleteAnswer>
    release(
      call: { workerId: string; leases: { token: string; begun?: false }[] },
      options?: CallOptions,
    ): Promise<ReleaseAnswer>
  }
  readonly workers: {
    put(id: string, fields: WorkerFields, options?: CallOptions): Promise<{ lastSeenAt?: string | null }>
    delete(id: string, options?: CallOptions): Promise<unknown>
  }
}
