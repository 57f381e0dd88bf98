import type { Page } from './wire.ts'

export interface Worker {
  id: string
  status: 'active' | 'draining' | 'lost'
  queues: string[]
  capacity: number | null
  version: string | null
  labels: Record<string, string>
  startedAt: string
  lastSeenAt: string
  inFlight: number
}

export interface PostQueuesByQueueLease {
  path: { queue: string }
  body: {
    workerId: string
    max?: number
    waitMs?: number
    leaseMs?: number
    requestId?: string
    prefetch?: number
  }
  response: {
    runs: Array<{
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
      traceparent: string
    }>
    cancelRequested?: string[]
    draining?: true
  }
}

export interface PostLeasesHeartbeat {
  body: {
    workerId: string
    leases: Array<{
      token: string
      checkpoint?: unknown
      progress?: { value: number; text?: string }
      logs?: Array<{
        line?: number
        level?: 'debug' | 'info' | 'warn' | 'error'
        message: string
        at?: Date | string
      }>
    }>
  }
  response: {
    leases: Array<{
      token: string
      outcome: 'ok' | 'cancel_requested' | 'lease_lost' | 'unknown_token'
      leaseUntil?: string
      note?: string
    }>
    draining?: true
  }
}

export interface PostLeasesComplete {
  body: {
    workerId: string
    results: Array<{
      token: string
      status: 'succeeded' | 'failed' | 'snoozed' | 'canceled'
      result?: unknown
      error?: {
        message: string
        class?: 'timeout' | 'network' | 'http_4xx' | 'http_5xx' | 'rate_limited' | 'handler_error' | 'lost'
        retryable?: boolean
      }
      retryIn?: string
      durationMs?: number
    }>
  }
  response: { results: Array<{ token: string; outcome: 'ok' | 'lease_lost' | 'unknown_token'; note?: string }> }
}

export interface PostLeasesRelease {
  body: { workerId: string; leases: Array<{ token: string }> }
  response: { leases: Array<{ token: string; outcome: 'ok' | 'lease_lost' | 'unknown_token' }> }
}

export interface PutWorkersById {
  path: { id: string }
  body: {
    queues?: string[]
    capacity?: number
    version?: string
    labels?: Record<string, string>
    draining?: boolean
  }
  response: Worker
}

export interface GetWorkers {
  query?: { queue?: string; status?: 'active' | 'draining' | 'lost'; limit?: number; cursor?: string }
  response: Page<Worker>
}

interface GetWorkersById {
  path: { id: string }
  response: Worker
}

interface DeleteWorkersById {
  path: { id: string }
  response: undefined
}

export interface GetQueuesByQueueScale {
  path: { queue: string }
  query?: { targetLag?: string; perWorker?: number }
  response: {
    queue: string
    workers: number
    slots: number
    backlog: number
    running: number
    serviceMs: number | null
    arrivalsPerSecond: number
    targetLagMs: number
    perWorker: number
  }
}

export interface WorkerOperations {
  'POST /v1/queues/{queue}/lease': PostQueuesByQueueLease
  'POST /v1/leases/heartbeat': PostLeasesHeartbeat
  'POST /v1/leases/complete': PostLeasesComplete
  'POST /v1/leases/release': PostLeasesRelease
  'PUT /v1/workers/{id}': PutWorkersById
  'GET /v1/workers': GetWorkers
  'GET /v1/workers/{id}': GetWorkersById
  'DELETE /v1/workers/{id}': DeleteWorkersById
  'GET /v1/queues/{queue}/scale': GetQueuesByQueueScale
}
