import type { DefinedLease } from '../startable.ts'
import type { KnownWorker } from './known-worker.ts'

export interface PollTerms {
  holder: string
  max: number
  /** So many of them would have to wait at the worker. */
  prefetch: number
  leaseMs: number
  /** Its holder may have leases already: the call may be a repeated one. */
  mayBeRepeated: boolean
}

/** Whether anybody still waits for the answer to a call; an `AbortSignal` tells it. */
export interface Gone {
  readonly aborted: boolean
  addEventListener(type: 'abort', listener: () => void): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** A lease call that waits for work. It is answered once. */
export class Poll {
  readonly worker: KnownWorker
  readonly holder: string
  readonly max: number
  readonly prefetch: number
  readonly leaseMs: number
  mayBeRepeated: boolean
  /** It is being claimed for, or looked at whether it is a repeated one; not both at once, since one would see the other's. */
  isBusy = false
  /** It has waited long enough: what is claimed next is the last that it gets. */
  isLeaving = false
  readonly answered: Promise<DefinedLease[]>
  #settle: ((leases: DefinedLease[]) => void) | null
  #onOver: (() => void) | null = null

  constructor(worker: KnownWorker, terms: PollTerms) {
    this.worker = worker
    this.holder = terms.holder
    this.max = terms.max
    this.prefetch = terms.prefetch
    this.leaseMs = terms.leaseMs
    this.mayBeRepeated = terms.mayBeRepeated
    let settle: ((leases: DefinedLease[]) => void) | null = null
    this.answered = new Promise((resolve) => {
      settle = resolve
    })
    this.#settle = settle
  }

  /** Answered, or nobody waits for its answer any more. */
  get isOver(): boolean {
    return this.#settle === null
  }

  /** Slots in which a run could start this moment. */
  get free(): number {
    return this.max - this.prefetch
  }

  whenOver(onOver: () => void): void {
    this.#onOver = onOver
  }

  /** False: nobody waits any more, and the leases are still the caller's. */
  answer(leases: DefinedLease[]): boolean {
    const settle = this.#settle
    if (settle === null) return false
    this.#settle = null
    this.#onOver?.()
    settle(leases)
    return true
  }
}
