import type { Completion } from './executors/remote/judge-remote.ts'
import type { LeaseAnswer, LeaseCall } from './executors/remote/lease-calls.ts'
import type { Gone } from './executors/remote/poll.ts'
import type { HeartbeatItem, RemoteWorkers, WorkerCaller } from './executors/remote/remote-workers.ts'
import { readScale, type ScaleRequest, type ScaleView } from './lookup/scale.sql.ts'
import { getWorker, type ListWorkers, listWorkers, type WorkerView, workerViewOf } from './lookup/worker-view.ts'
import { OfScope } from './scope.ts'
import type { Page } from './store/page.ts'
import { noSuch, type TenantScope } from './tenant-scope.ts'
import { deleteWorker, putWorker, type WorkerFields, type WorkerKey } from './tenants/worker-rows.sql.ts'

type LeaseRequest = Omit<LeaseCall, 'prefetch' | 'begins'> &
  Partial<Pick<LeaseCall, 'prefetch' | 'begins'>> & { workerId: string }

/** Workers that perform a tenant's runs elsewhere: their leases, and who they are. */
export class TenantWorkers extends OfScope<TenantScope> {
  /** Waits for runs of the queue, which exists by being named. `gone`: nobody waits for the answer any more. */
  async lease(
    queue: string,
    { workerId, prefetch = 0, begins = false, ...call }: LeaseRequest,
    gone: Gone,
  ): Promise<LeaseAnswer> {
    const { caller, engine } = this.scope
    const queueId = await engine.registry.queueId(caller.tenantId, queue)
    return this.#remote.lease(this.#caller(workerId), { queueId, queue }, { ...call, prefetch, begins }, gone)
  }

  heartbeat(workerId: string, items: readonly HeartbeatItem[]): ReturnType<RemoteWorkers['heartbeat']> {
    return this.#remote.heartbeat(this.#caller(workerId), items)
  }

  complete(
    workerId: string,
    items: readonly ({ token: string } & Completion)[],
  ): ReturnType<RemoteWorkers['complete']> {
    return this.#remote.complete(
      this.#caller(workerId),
      items.map(({ token, ...said }) => ({ token, said })),
    )
  }

  /** Gives runs back; `failures` does not rise. */
  release(
    workerId: string,
    leases: readonly { token: string; begun?: false }[],
  ): ReturnType<RemoteWorkers['complete']> {
    return this.#remote.complete(
      this.#caller(workerId),
      leases.map(({ token, ...began }) => ({ token, said: { status: 'released', ...began } })),
    )
  }

  /** Registers a worker, or changes what is known of it. */
  async put(id: string, fields: WorkerFields): Promise<WorkerView> {
    const { engine, caller } = this.scope
    const now = engine.clock.now()
    const row = await putWorker(engine.db, this.#keyOf(id), fields, now)
    this.#remote.setDraining(caller.tenantId, id, row.isDraining)
    return workerViewOf(row, now)
  }

  async get(id: string): Promise<WorkerView> {
    const found = await getWorker(this.scope.fresh, this.#keyOf(id), this.scope.engine.clock.now())
    if (found === null) throw noSuch('worker', id)
    return found
  }

  /** By id, a page at a time. */
  list(request: ListWorkers = {}): Promise<Page<WorkerView>> {
    const { fresh, caller, engine } = this.scope
    return listWorkers(fresh, { ...request, tenantId: caller.tenantId, shards: engine.shards, now: engine.clock.now() })
  }

  async delete(id: string): Promise<void> {
    const { engine, caller } = this.scope
    // One that has just called may not stand in the registry yet.
    const wasHere = this.#remote.forget(caller.tenantId, id)
    if (!(await deleteWorker(engine.db, this.#keyOf(id))) && !wasHere) throw noSuch('worker', id)
  }

  /** How many workers a queue needs. */
  async scale(queue: string, wanted: Pick<ScaleRequest, 'targetLagMs' | 'perWorker'>): Promise<ScaleView> {
    const { fresh, caller, engine } = this.scope
    const found = await readScale(fresh, { ...wanted, tenantId: caller.tenantId, queue, now: engine.clock.now() })
    if (found === null) throw noSuch('queue', queue)
    return found
  }

  get #remote(): RemoteWorkers {
    return this.scope.engine.remote
  }

  #caller(workerId: string): WorkerCaller {
    const { tenantId, isInstallation = false } = this.scope.caller
    return { tenantId, mayServeAll: isInstallation, workerId }
  }

  #keyOf(id: string): WorkerKey {
    return { tenantId: this.scope.caller.tenantId, id, shards: this.scope.engine.shards }
  }
}
