import type { Tenant } from '@belfry/engine'
import type { Static } from 'typebox'
import type { completeAnswer, heartbeatAnswer, heartbeatBody, leaseAnswer, releaseAnswer } from './schemas/lease.ts'
import type { scale, worker, workerInput } from './schemas/worker.ts'

interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

/** What the routes of workers ask of the engine. */
interface TenantWorkers {
  lease(queue: string, call: object, gone: AbortSignal): Promise<Static<typeof leaseAnswer>>
  heartbeat(workerId: string, items: Static<typeof heartbeatBody>['leases']): Promise<Static<typeof heartbeatAnswer>>
  complete(workerId: string, items: object[]): Promise<Static<typeof completeAnswer>['results']>
  release(workerId: string, tokens: string[]): Promise<Static<typeof releaseAnswer>['leases']>
  put(id: string, fields: Static<typeof workerInput>): Promise<Static<typeof worker>>
  get(id: string): Promise<Static<typeof worker>>
  list(filter: object): Promise<Page<Static<typeof worker>>>
  delete(id: string): Promise<void>
  scale(queue: string, options: { targetLagMs: number; perWorker: number }): Promise<Static<typeof scale>>
}

export type TenantWithWorkers = Tenant & { workers: TenantWorkers }
