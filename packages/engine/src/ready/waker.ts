import type { Clock, Instant } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Step } from '../runtime/loop.ts'
import { type Entry, Pending } from './pending.ts'
import type { MadeReady, Wakeable, Woken } from './woken.ts'

interface WakerDeps {
  clock: Clock
  logger: Logger
  /** There is something to look at. */
  onNews(): void
  onReady(run: MadeReady): void
  onWaiting(shard: number, dueAt: Instant): void
}

const BATCH = 500
const LONGEST_WAIT_MS = 1_000
/** A name that another transaction holds is looked at again soon; one whose statement failed, later. */
const HELD_PAUSE_MS = 20
const FAILED_PAUSE_MS = 1_000
/** After so many times it is left to the sweep. */
const MAX_TRIES = 25
/** Names of a kind that wait to be looked at; the sweep finds what does not fit. */
const MAX_PENDING = 100_000

/** The names of one kind whose runs may have to be woken. */
export class WakeList<Name> {
  readonly #deps: WakerDeps
  readonly #kind: Wakeable<Name>
  #pending: Pending<Name>

  constructor(deps: WakerDeps, kind: Wakeable<Name>) {
    this.#deps = deps
    this.#kind = kind
    this.#pending = this.#newPending()
  }

  get firstAt(): Instant {
    return this.#pending.firstAt
  }

  /** Runs of this name may be woken, now or at the instant. */
  look(name: Name, at: Instant = this.#deps.clock.now()): void {
    this.#pending.put(name, at)
    this.#deps.onNews()
  }

  /** Looks at one batch; answers how many runs it woke. What fails keeps no other kind from being looked at. */
  async runOnce(): Promise<number> {
    const now = this.#deps.clock.now()
    // Forgotten before the statement: what is told meanwhile is looked at again.
    const batch = this.#pending.take(now, BATCH)
    if (batch.length === 0) return 0
    try {
      if (batch.length === BATCH && !(await this.#mayWait())) return 0
      return this.#tell(await this.#kind.wake(batch.map(nameOf), now), batch, now)
    } catch (error) {
      this.#deps.logger.warn(`${this.#kind.name} cannot be woken yet`, { error })
      for (const entry of batch) this.#tryAgain(entry, now + FAILED_PAUSE_MS)
      return 0
    }
  }

  #tell({ ready, waiting, again, held }: Woken<Name>, batch: readonly Entry<Name>[], now: Instant): number {
    const { onReady, onWaiting } = this.#deps
    for (const run of ready) onReady(run)
    for (const { shard, dueAt } of waiting) onWaiting(shard, dueAt)
    for (const { name, at } of again) this.#pending.put(name, at)
    if (held.length > 0) {
      const ids = new Set(held.map(this.#kind.idOf))
      for (const entry of batch) if (ids.has(entry.id)) this.#tryAgain(entry, now + HELD_PAUSE_MS)
    }
    return ready.length + waiting.length
  }

  #tryAgain({ name, tries }: Entry<Name>, at: Instant): void {
    if (tries + 1 < MAX_TRIES) this.#pending.put(name, at, tries + 1)
  }

  /** If no run waits at all, everything that was told before is forgotten. */
  async #mayWait(): Promise<boolean> {
    if (this.#kind.anyWaits === undefined) return true
    const told = this.#pending
    this.#pending = this.#newPending()
    let mayWait = true
    try {
      mayWait = await this.#kind.anyWaits()
    } finally {
      if (mayWait) {
        told.putAll(this.#pending)
        this.#pending = told
      }
    }
    return mayWait
  }

  #newPending(): Pending<Name> {
    const { idOf, join = (_, told) => told } = this.#kind
    return new Pending({ max: MAX_PENDING, idOf, join })
  }
}

const nameOf = <Name>({ name }: Entry<Name>): Name => name

/**
 * Wakes runs: those whose time has come, and those that wait for something that has ended. It is told the names of what runs may wait
 * for, by what ends it and by the pulse, and looks at them kind by kind. A word that is lost costs a second, never a run: the
 * pulse tells due times again, and the sweep finds what no agent was told of.
 */
export class Waker implements Step {
  readonly #deps: WakerDeps
  readonly #lists: { readonly firstAt: Instant; runOnce(): Promise<number> }[] = []

  constructor(deps: WakerDeps) {
    this.#deps = deps
  }

  /** The names of a further kind. */
  list<Name>(kind: Wakeable<Name>): WakeList<Name> {
    const list = new WakeList(this.#deps, kind)
    this.#lists.push(list)
    return list
  }

  async runOnce(): Promise<{ waitMs: number; woken: number }> {
    const woken = await Promise.all(this.#lists.map((list) => list.runOnce()))
    const now = this.#deps.clock.now()
    const nextAt = Math.min(now + LONGEST_WAIT_MS, ...this.#lists.map(({ firstAt }) => firstAt))
    return { waitMs: Math.max(0, nextAt - now), woken: woken.reduce((sum, count) => sum + count, 0) }
  }
}
