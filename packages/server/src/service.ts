import type { Belfry, JobInput } from '@belfry/engine'

/**
 * What the routes ask of the engine, as they see it. The engine's own classes fit these shapes; nothing here decides
 * anything.
 */
export type Scope = 'read' | 'write' | 'worker' | 'admin'

export interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

export interface PageRequest {
  limit?: number
  cursor?: string
}

export type JobView = NonNullable<Awaited<ReturnType<Belfry['jobs']['get']>>>
export type RunView = NonNullable<Awaited<ReturnType<Belfry['runs']['get']>>>
export type RunSummary = Awaited<ReturnType<Belfry['runs']['list']>>['items'][number]
export type LogView = Awaited<ReturnType<Belfry['runs']['logs']>>[number]
export type DeadLetterView = Awaited<ReturnType<Belfry['deadLetters']['list']>>['items'][number]
export type JobStatus = Awaited<ReturnType<Belfry['jobs']['cancel']>>['status']

export interface ChangeView {
  changedAt: Date
  action: string
  actor: string
  before: unknown
  after: unknown
}

export interface CreatedJob {
  jobId: string
  deduplicated: boolean
  status: JobView['status']
  nextRunAt: Date | null
}

/** Filters come from a query whose schema has checked them. */
type Filter = PageRequest & Record<string, unknown>

export interface TenantJobs {
  create(input: JobInput, options?: { idempotencyKey?: string }): Promise<CreatedJob>
  createMany(inputs: readonly JobInput[]): Promise<{ jobId: string; deduplicated: boolean }[]>
  get(id: string): Promise<JobView>
  list(filter: Filter): Promise<Page<JobView>>
  upsert(name: string, input: JobInput): Promise<{ jobId: string; created: boolean; version: number }>
  update(id: string, patch: Partial<JobInput>, options?: { ifVersion?: number }): Promise<{ version: number }>
  delete(id: string): Promise<void>
  cancel(id: string, options?: { running?: 'cancel' | 'finish' }): Promise<{ status: JobStatus }>
  pause(id: string, options?: { reason?: string }): Promise<{ status: JobStatus }>
  resume(id: string): Promise<{ status: JobStatus }>
  trigger(id: string, options?: { payload?: unknown }): Promise<{ runId: string }>
  changes(id: string, page: PageRequest): Promise<Page<ChangeView>>
}

/** Everything one tenant has. A foreign id is not found, exactly like one that never was. */
export interface Tenant {
  jobs: TenantJobs
  runs: {
    get(id: string): Promise<RunView>
    list(filter: Filter): Promise<Page<RunSummary>>
    logs(id: string): Promise<LogView[]>
    cancel(id: string): Promise<{ status: string }>
    retry(id: string): Promise<{ runId: string }>
  }
  deadLetters: {
    list(filter: Filter): Promise<Page<DeadLetterView>>
    get(runId: string): Promise<DeadLetterView>
    redrive(what: {
      filter?: object
      runIds?: string[]
      dryRun?: boolean
    }): Promise<{ count: number; runIds: string[] }>
    delete(runId: string): Promise<void>
  }
  queues: {
    list(page: PageRequest): Promise<Page<QueueView>>
    get(name: string): Promise<QueueView>
    put(name: string, options: { kind?: 'worker' | 'http' }): Promise<QueueView>
    pause(name: string, options?: { reason?: string }): Promise<QueueView>
    resume(name: string): Promise<QueueView>
    purge(name: string): Promise<{ purged: number }>
    delete(name: string): Promise<void>
  }
  payloads: {
    put(bytes: Buffer, contentType: string): Promise<{ payloadRef: string; size: number; expiresAt: Date }>
    get(ref: string): Promise<{ bytes: Buffer; contentType: string; size: number; expiresAt: Date } | null>
    delete(ref: string): Promise<boolean>
  }
  secrets: {
    put(name: string, value: string): Promise<void>
    list(): Promise<{ name: string; updatedAt: Date }[]>
    delete(name: string): Promise<boolean>
  }
  signingKeys: {
    list(): Promise<SigningKeyView[]>
    rotate(overlapMs: number): Promise<SigningKeyView>
  }
  circuits: {
    list(): Promise<CircuitView[]>
    reset(origin: string): Promise<boolean>
  }
}

interface QueueView {
  name: string
  kind: string | null
  shared: boolean
  paused: boolean
  pausedAt: Date | null
  pauseReason: string | null
  createdAt: Date
}

interface SigningKeyView {
  id: string
  createdAt: Date
  expiresAt: Date | null
  secret: string
}

interface CircuitView {
  origin: string
  state: string
  openedAt: Date
  probeAt: Date
  failures: number
  reason: string
}

interface NodeView {
  id: string
  roles: string[]
  address: string | null
  startedAt: Date
  pulsedAt: Date
}

interface Authenticated {
  tenantId: number
  tenant: string
  scopes: Scope[]
  prefix: string
  keyId: string
}

interface Quotas {
  requestsPerSecond?: number | null
  createsPerSecond?: number | null
}

interface TenantRecord {
  id: number
  name: string
  tier: string
  weight: number
  quotas: Record<'activeJobs' | 'createsPerSecond' | 'requestsPerSecond' | 'payloadBytes', number | null>
  createdAt: Date
}

interface TenantSettings {
  tier?: string
  weight?: number
  quotas?: Partial<TenantRecord['quotas']>
}

interface ApiKeyRecord {
  id: string
  tenantId: number
  name: string
  prefix: string
  scopes: Scope[]
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
}

interface MadeApiKey {
  id: string
  prefix: string
  key: string
}

export interface Service {
  ping(): Promise<void>
  readiness(): Promise<{ ready: boolean; checks: { name: string; ok: boolean; detail?: string }[] }>
  nodes(): Promise<NodeView[]>
  completeCallback(token: string, body: { status: string; result?: unknown; error?: unknown }): Promise<unknown>
  tenant(caller: { tenantId: number; tenant: string; actor: string }): Tenant
  admin: {
    apiKeys: {
      authenticate(key: string): Promise<Authenticated | null>
      create(
        key: { tenantId: number; name: string; scopes: Scope[]; expiresAt?: Date },
        by: string,
      ): Promise<MadeApiKey>
      /** Of all tenants if null. */
      list(tenantId: number | null, page: PageRequest): Promise<Page<ApiKeyRecord>>
      get(id: string): Promise<ApiKeyRecord | null>
      revoke(id: string, by: string): Promise<unknown>
      rotate(id: string, options: { overlapMs: number }, by: string): Promise<MadeApiKey>
    }
    tenants: {
      quotasOf(tenantId: number): Promise<Quotas>
      byName(name: string): Promise<{ id: number; name: string } | null>
      create(tenant: TenantSettings & { name: string }, by: string): Promise<TenantRecord>
      get(id: number): Promise<TenantRecord>
      list(page: PageRequest): Promise<Page<TenantRecord>>
      update(id: number, patch: TenantSettings, by: string): Promise<TenantRecord>
      delete(id: number, by: string): Promise<unknown>
    }
  }
}
