import type { Instant } from '../../runtime/clock.ts'
import type { Queryable } from '../../store/database.ts'
import { type Sighting, sawWorkers } from '../../tenants/worker-rows.sql.ts'
import { KnownWorker } from './known-worker.ts'

/** After so long without a call a worker is forgotten here; the registry says that it is lost. */
const FORGET_MS = 60_000

/** Who works through this node, told to the registry every few seconds in one statement. */
export class KnownWorkers {
  readonly #workers = new Map<string, KnownWorker>()

  find(tenantId: number, id: string): KnownWorker | undefined {
    return this.#workers.get(`${tenantId}.${id}`)
  }

  saw(tenantId: number, id: string, now: Instant, onNew: () => void): KnownWorker {
    const key = `${tenantId}.${id}`
    let worker = this.#workers.get(key)
    if (worker === undefined) {
      worker = new KnownWorker(tenantId, id)
      this.#workers.set(key, worker)
      onNew()
    }
    worker.seenAt = now
    worker.isNews = true
    return worker
  }

  /** False: it was not known here. */
  forget(tenantId: number, id: string): boolean {
    return this.#workers.delete(`${tenantId}.${id}`)
  }

  /** Tells the registry who was there, and hears who shall drain. */
  async tell(db: Queryable, { shards, now }: { shards: number; now: Instant }): Promise<void> {
    const sightings: Sighting[] = []
    for (const [key, worker] of this.#workers) {
      if (worker.calls.size > 0) worker.seenAt = now
      const inFlight = worker.inFlightAt(now)
      const hasChanged = worker.isNews || worker.calls.size > 0 || inFlight !== worker.toldInFlight
      if (!hasChanged) {
        // One that holds something is remembered, so that the registry hears when it does not any more.
        if (inFlight === 0 && now - worker.seenAt > FORGET_MS) this.#workers.delete(key)
        continue
      }
      worker.isNews = false
      const { tenantId, id, queue, seenAt, isTold } = worker
      sightings.push({ tenantId, id, queue, seenAt, inFlight, isNew: !isTold })
    }
    if (sightings.length === 0) return
    const known = await sawWorkers(db, sightings, shards)
    const byKey = new Map(known.map((one) => [`${one.tenantId}.${one.id}`, one]))
    for (const { tenantId, id, inFlight } of sightings) {
      const found = byKey.get(`${tenantId}.${id}`)
      const worker = this.find(tenantId, id)
      // Somebody deleted it, through whichever node: it is there again with its next call.
      if (found === undefined) this.forget(tenantId, id)
      else if (worker) {
        worker.isTold = true
        worker.toldInFlight = inFlight ?? 0
        this.drain(worker, found.isDraining)
      }
    }
  }

  /** A worker that shall drain hears it on its open calls. */
  drain(worker: KnownWorker, isDraining: boolean): void {
    worker.isDraining = isDraining
    if (isDraining) worker.answerCalls()
  }
}
