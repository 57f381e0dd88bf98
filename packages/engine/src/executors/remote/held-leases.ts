import { type Fence, runKey } from '../../leases/lease.ts'
import type { Instant } from '../../runtime/clock.ts'
import type { DefinedLease } from '../startable.ts'
import { type KnownWorker, SLACK_MS } from './known-worker.ts'

/** What one lease call holds, as far as this node knows. */
interface HeldCall {
  worker: KnownWorker
  leases: Map<string, HeldLease>
  until: Instant
}

export interface HeldLease {
  lease: DefinedLease
  worker: KnownWorker
  leaseMs: number
  /** It has left a checkpoint or its progress. */
  hasLeft: boolean
}

/** The leases that this node gave to workers. It is a memory, not the truth: a lease that is not in it is read from the tables. */
export class HeldLeases {
  readonly #calls = new Map<string, HeldCall>()

  add(worker: KnownWorker, leaseMs: number, leases: readonly DefinedLease[]): void {
    for (const lease of leases) {
      let call = this.#calls.get(lease.holder)
      if (call === undefined) {
        call = { worker, leases: new Map(), until: lease.leaseUntil }
        this.#calls.set(lease.holder, call)
      }
      const known = call.leases.get(runKey(lease))
      if (known === undefined) worker.inFlight++
      call.leases.set(runKey(lease), { lease, worker, leaseMs, hasLeft: known?.hasLeft ?? false })
      call.until = Math.max(call.until, lease.leaseUntil)
      worker.holdsUntil = Math.max(worker.holdsUntil, lease.leaseUntil)
    }
  }

  get(fence: Fence): HeldLease | null {
    const held = this.#calls.get(fence.holder)?.leases.get(runKey(fence))
    return held?.lease.attempt === fence.attempt ? held : null
  }

  /** Its end is on the way: it is nobody's any more. */
  take(fence: Fence): HeldLease | null {
    const held = this.get(fence)
    if (held === null) return null
    const call = this.#calls.get(fence.holder) as HeldCall
    call.leases.delete(runKey(fence))
    call.worker.inFlight--
    if (call.leases.size === 0) this.#calls.delete(fence.holder)
    return held
  }

  renewed(fence: Fence, until: Instant): void {
    const call = this.#calls.get(fence.holder)
    const held = this.get(fence)
    if (!call || !held) return
    held.lease.leaseUntil = until
    call.until = Math.max(call.until, until)
  }

  hasCall(holder: string): boolean {
    return this.#calls.has(holder)
  }

  /** Who holds this run, of the workers that this node knows. */
  findRun(jobId: string, nominalAt: Instant): HeldLease | null {
    const key = runKey({ jobId, nominalAt })
    for (const { leases } of this.#calls.values()) {
      const held = leases.get(key)
      if (held) return held
    }
    return null
  }

  forgetExpired(now: Instant): void {
    for (const [holder, call] of this.#calls) {
      if (now < call.until + SLACK_MS) continue
      call.worker.inFlight -= call.leases.size
      this.#calls.delete(holder)
    }
  }
}
