/** A run as the server leases it. Instants are RFC 3339. */
export interface LeasedRun {
  runId: string
  jobId: string
  nominalAt: string
  attempt: number
  failures: number
  token: string
  leaseUntil: string
  deadline: string
  payload?: unknown
  payloadRef?: string
  labels?: Record<string, string>
  checkpoint?: unknown
  atMostOnce?: true
  traceparent?: string
}

export interface LeaseCall {
  workerId: string
  max: number
  prefetch: number
  waitMs: number
  leaseMs: number
  requestId: string
}

export interface LeaseAnswer {
  runs: LeasedRun[]
  cancelRequested?: string[]
  draining?: true
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface LogLine {
  line: number
  level: LogLevel
  message: string
  at: string
}

export interface HeartbeatItem {
  token: string
  checkpoint?: unknown
  progress?: { value: number; text?: string }
  logs?: LogLine[]
}

export interface HeartbeatAnswer {
  leases: HeartbeatOutcome[]
  draining?: true
}

export interface HeartbeatOutcome {
  token: string
  outcome: 'ok' | 'cancel_requested' | 'lease_lost' | 'unknown_token'
  leaseUntil?: string
  note?: string
}

export type FailureClass = 'timeout' | 'network' | 'http_4xx' | 'http_5xx' | 'rate_limited' | 'handler_error' | 'lost'

export interface Completion {
  token: string
  status: 'succeeded' | 'failed' | 'snoozed' | 'canceled'
  result?: unknown
  error?: { message: string; class?: FailureClass; retryable?: boolean }
  retryIn?: string
  durationMs?: number
}

export interface ItemOutcome {
  token: string
  outcome: 'ok' | 'lease_lost' | 'unknown_token'
  note?: string
}

export interface WorkerFields {
  queues?: string[]
  capacity?: number
  version?: string
  labels?: Record<string, string>
  draining?: boolean
}

export interface CallOptions {
  signal?: AbortSignal
  timeoutMs?: number
  retries?: number
}

/** What a worker asks of the client; `BelfryClient` is one. */
export interface WorkerClient {
  /** Where the server is and how to be known there: for the thread that renews leases while the event loop is blocked. */
  readonly address?: { url: string; headers: Readonly<Record<string, string>> } | null
  readonly leases: {
    lease(queue: string, call: LeaseCall, options?: CallOptions): Promise<LeaseAnswer>
    heartbeat(call: { workerId: string; leases: HeartbeatItem[] }, options?: CallOptions): Promise<HeartbeatAnswer>
    complete(
      call: { workerId: string; results: Completion[] },
      options?: CallOptions,
    ): Promise<{ results: ItemOutcome[] }>
    release(
      call: { workerId: string; leases: { token: string }[] },
      options?: CallOptions,
    ): Promise<{ leases: ItemOutcome[] }>
  }
  readonly workers: {
    put(id: string, fields: WorkerFields, options?: CallOptions): Promise<{ lastSeenAt?: string | null }>
    delete(id: string, options?: CallOptions): Promise<unknown>
  }
}
