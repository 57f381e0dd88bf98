import { isKeyed } from '../job/states.ts'
import type { Lease } from '../leases/lease.ts'
import type { DirectLeases } from '../promotion/direct-leases.ts'
import type { Turns } from '../ready/turn.ts'
import type { MadeReady } from '../ready/wake-waiting.sql.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Queryable } from '../store/database.ts'
import { releaseChildren } from './children.sql.ts'
import { type FreeChild, leaseChildren } from './lease-children.sql.ts'

/** What becomes of the children of one transaction that wait for nobody any more. */
export interface Released {
  /** For whoever claims them. */
  ready: MadeReady[]
  /** To executors of this node: to be handed over after the commit. */
  leases: Lease[]
}

/** The executors of this node. */
export type Direct = Pick<DirectLeases, 'reserve' | 'unreserve' | 'deliver'>

interface ReleaseDeps {
  clock: Clock
  turns: Turns
  direct: Direct
  leaseMs: number
}

/**
 * Lets children go: to an executor of this node that has room for them, while nothing else of their queue waits, as due timers go;
 * all others become ready.
 */
export class Release {
  readonly holder: string
  readonly #deps: ReleaseDeps
  readonly #reserved: FreeChild[] = []

  constructor(deps: ReleaseDeps, holder: string) {
    this.#deps = deps
    this.holder = holder
  }

  /** Something may have been leased, whatever became of the transaction. */
  get hasReserved(): boolean {
    return this.#reserved.length > 0
  }

  async letGo(tx: Queryable, children: readonly FreeChild[]): Promise<Released> {
    const { clock, leaseMs, turns } = this.#deps
    // Not before: what they waited for has ended by now.
    const now = clock.now()
    const direct = this.#reserve(children)
    const terms = { holder: this.holder, now, leaseUntil: now + leaseMs }
    const leases = direct.length === 0 ? [] : await leaseChildren(tx, direct, terms)
    const leased = new Set(leases.map(({ jobId }) => jobId))
    // Only those are charged that become ready now.
    const left = children
      .filter(({ jobId }) => !leased.has(jobId))
      .map((child) => ({ jobId: child.jobId, place: child.place, turn: turns.next(now, child) }))
    return { ready: await releaseChildren(tx, left, now), leases }
  }

  /** The leases are with their executors, or nothing came of them. */
  unreserve(): void {
    for (const child of this.#reserved.splice(0)) this.#deps.direct.unreserve(child)
  }

  /** All of a queue or none: where only some of them could start, their turns say which. */
  #reserve(children: readonly FreeChild[]): FreeChild[] {
    const counts = new Map<number, number>()
    const plain = children.filter(({ delivery }) => !isKeyed(delivery))
    for (const { queueId } of plain) counts.set(queueId, (counts.get(queueId) ?? 0) + 1)
    for (const [queueId, count] of counts) if (!this.#deps.direct.reserve(queueId, count)) counts.delete(queueId)
    const reserved = plain.filter(({ queueId }) => counts.has(queueId))
    this.#reserved.push(...reserved)
    return reserved
  }
}
