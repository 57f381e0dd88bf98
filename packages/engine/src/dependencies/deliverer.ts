import { BelfryError } from '../errors.ts'
import type { Clock, Instant } from '../runtime/clock.ts'
import type { Step } from '../runtime/loop.ts'
import type { PulseAnswer } from '../shards/pulse.sql.ts'
import { type DeliverDeps, deliver } from './deliver.ts'
import { type ChainDeps, deliverChain } from './deliver-chain.ts'
import { type Behind, hasEndsOfRecurring } from './outbox.sql.ts'

export interface DelivererDeps extends DeliverDeps, ChainDeps {
  clock: Clock
}

/** So many that a statement is worth its while, and so few that the first children are at work while the next are told. */
const BATCH = 250
const LONGEST_WAIT_MS = 1_000
const NOTHING = { ends: 0, hasMore: false, wasHeld: false }
/** What somebody else holds is looked at again soon, not in a spin. */
const HELD_PAUSE_MS = 20
/** Opening children again takes locks that others may hold for long: after a failure everybody else is told first. */
const OPEN_PAUSE_MS = 1_000

/**
 * Tells jobs that wait for others what became of those. It is told after each commit that wrote to the outbox, by whoever ended
 * a run there, and by the pulse of what nobody has delivered: a node that dies between the end of a run and its delivery delays
 * the children by a second or two. Any node delivers anything; a row of the outbox goes in the transaction that applies it.
 */
export class Deliverer implements Step {
  readonly name = 'deliverer'
  readonly #deps: DelivererDeps
  #isNews = false
  /** Up to where ends were looked at lately. */
  #oneOffsBehind: Behind = null
  #chainsBehind: Behind = null
  #opensAt: Instant = 0

  constructor(deps: DelivererDeps) {
    this.#deps = deps
  }

  /** Something stands in the outbox, and is committed. */
  look(): void {
    this.#isNews = true
  }

  saw({ hasOutbox }: Pick<PulseAnswer, 'hasOutbox'>): boolean {
    if (hasOutbox) this.#isNews = true
    return hasOutbox
  }

  async runOnce(): Promise<{ waitMs: number; delivered: number }> {
    if (!this.#isNews) return { waitMs: LONGEST_WAIT_MS, delivered: 0 }
    // Forgotten before the statements: what ends meanwhile is told again.
    this.#isNews = false
    try {
      const oneOffs = await this.#deliverOneOffs()
      const chains = await this.#deliverChains()
      if (oneOffs.hasMore || chains.hasMore) this.#isNews = true
      const wasHeld = oneOffs.wasHeld || chains.wasHeld
      if (wasHeld) this.#isNews = true
      const delivered = oneOffs.ends + chains.ends
      const waitMs = !this.#isNews ? LONGEST_WAIT_MS : wasHeld && delivered === 0 ? HELD_PAUSE_MS : 0
      return { waitMs, delivered }
    } catch (error) {
      this.#isNews = true
      this.#opensAt = this.#deps.clock.now() + OPEN_PAUSE_MS
      if (error instanceof BelfryError && error.code === 'in_progress') return { waitMs: HELD_PAUSE_MS, delivered: 0 }
      throw error
    }
  }

  async #deliverOneOffs() {
    const { clock, wakeups } = this.#deps
    const now = clock.now()
    const opened = now >= this.#opensAt ? 'open' : 'leave'
    const delivered = await deliver(this.#deps, { now, limit: BATCH, behind: this.#oneOffsBehind, opened })
    this.#oneOffsBehind = delivered.behind
    for (const run of delivered.ready) wakeups.ready(run)
    return delivered
  }

  async #deliverChains() {
    const { clock, wakeups } = this.#deps
    if (!(await hasEndsOfRecurring(this.#deps.db))) return NOTHING
    const delivered = await deliverChain(this.#deps, clock.now(), this.#chainsBehind)
    this.#chainsBehind = delivered.behind
    for (const run of delivered.ready) wakeups.ready(run)
    for (const { jobId, nominalAt } of delivered.asked) wakeups.cancel(jobId, nominalAt)
    return delivered
  }
}
